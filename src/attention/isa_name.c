#include "attention/isa_name.h"

#include <string.h>

static const struct {
    attn_isa isa;
    const char *name;
} isa_names[] = {{ATTN_ISA_SCALAR, "scalar"},
                 {ATTN_ISA_AVX2, "avx2"},
                 {ATTN_ISA_AVX512, "avx512"},
                 {ATTN_ISA_NEON, "neon"}};

enum { ISA_COUNT = sizeof isa_names / sizeof isa_names[0] };

static const char *name_of(attn_isa isa)
{
    for (int i = 0; i < ISA_COUNT; i++)
        if (isa_names[i].isa == isa)
            return isa_names[i].name;
    return NULL;
}

const char *attn_isa_name(attn_isa isa)
{
    const char *name = name_of(isa);
    return name ? name : "unknown";
}

bool attn_isa_is_known(attn_isa isa)
{
    return name_of(isa) != NULL;
}

bool attn_isa_from_name(const char *name, attn_isa *isa)
{
    for (int i = 0; i < ISA_COUNT; i++)
        if (strcmp(isa_names[i].name, name) == 0) {
            *isa = isa_names[i].isa;
            return true;
        }
    return false;
}
