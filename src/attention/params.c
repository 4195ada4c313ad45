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

/* Where each earlier version's struct ended, and this one's. */
static bool size_is_known(size_t size, const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (size == sizes[i])
            return true;
    return false;
}

bool attn_params_read(attn_params *read, const attn_params *given)
{
    static const size_t sizes[] = {offsetof(attn_params, precision), sizeof(attn_params)};
    attn_params_init(read);
    if (!given)
        return true;
    if (!size_is_known(given->size, sizes, sizeof sizes / sizeof sizes[0]))
        return false;
    memcpy(read, given, given->size);
    return true;
}

void attn_options_init(attn_options *options)
{
    if (!options)
        return;
    *options = (attn_options){.size = sizeof *options, .isa = ATTN_ISA_BEST};
}

bool attn_options_read(attn_options *read, const attn_options *given)
{
    static const size_t sizes[] = {offsetof(attn_options, parallel_for), sizeof(attn_options)};
    attn_options_init(read);
    if (!given)
        return true;
    if (!size_is_known(given->size, sizes, sizeof sizes / sizeof sizes[0]))
        return false;
    memcpy(read, given, given->size);
    return true;
}
