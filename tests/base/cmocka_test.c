#include "cmocka_test.h"

#include <string.h>

void assert_message(const struct attn_error *error, const char *words)
{
    if (!strstr(error->message, words))
        fail_msg("the message is \"%s\", expected one with \"%s\"", error->message, words);
}

void skip_because(const char *reason)
{
    print_message("# %s\n", reason);
    skip();
}
