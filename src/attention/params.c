#include "attention/params.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

void attn_params_init(attn_params *params)
{
    if (!params)
        return;
    *params = (attn_params){
        .size = sizeof *params,
        .scale = NAN,
        .window_left = ATTN_WINDOW_OPEN,
        .window_right = ATTN_WINDOW_OPEN,
    };
}

/* Copies a struct that is as large as one of the versions that are known. */
static bool copy_known(void *read, const void *given, size_t size, const size_t *known,
                       size_t versions)
{
    for (size_t version = 0; version < versions; version++)
        if (size == known[version]) {
            memcpy(read, given, size);
            return true;
        }
    return false;
}

bool attn_params_read(attn_params *read, const attn_params *given)
{
    /* Of 0.1, 0.2 and now. */
    static const size_t known[] = {offsetof(attn_params, precision), offsetof(attn_params, dropout),
                                   sizeof(attn_params)};
    attn_params_init(read);
    return !given || copy_known(read, given, given->size, known, sizeof known / sizeof known[0]);
}

void attn_options_init(attn_options *options)
{
    if (!options)
        return;
    *options = (attn_options){.size = sizeof *options, .isa = ATTN_ISA_BEST};
}

bool attn_options_read(attn_options *read, const attn_options *given)
{
    static const size_t known[] = {offsetof(attn_options, parallel_for), sizeof(attn_options)};
    attn_options_init(read);
    return !given || copy_known(read, given, given->size, known, sizeof known / sizeof known[0]);
}

void attn_gradients_init(attn_gradients *gradients)
{
    if (!gradients)
        return;
    *gradients = (attn_gradients){.size = sizeof *gradients};
}
