#include "each_isa.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"

struct compute make_compute(int threads)
{
    struct compute compute;
    struct attn_error error;
    if (!compute_create(&compute, threads, &error))
        fail_msg("%s", error.message);
    return compute;
}

void each_isa(int threads, void (*body)(const struct compute *compute))
{
    const char *given = getenv("ATTN_ISA");
    char *before = given ? strdup(given) : NULL;
    for (attn_isa isa = ATTN_ISA_SCALAR; strcmp(attn_isa_name(isa), "unknown") != 0; isa++) {
        assert_int_equal(setenv("ATTN_ISA", attn_isa_name(isa), 1), 0);
        struct compute compute = make_compute(threads);
        if (attn_context_isa(compute.attention) == isa)
            body(&compute);
        else
            print_message("# not run: this machine lacks %s\n", attn_isa_name(isa));
        compute_destroy(&compute);
    }
    if (before)
        setenv("ATTN_ISA", before, 1);
    else
        unsetenv("ATTN_ISA");
    free(before);
}
