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

/* Copies a struct that is as large as an earlier version's or as this one's. */
static bool copy_known(void *read, const void *given, size_t size, size_t earlier, size_t now)
{
    if (size != earlier && size != now)
        return false;
    memcpy(read, given, size);
    return true;
}

bool attn_params_read(attn_params *read, const attn_params *given)
{
    attn_params_init(read);
    return !given ||
           copy_known(read, given, given->size, offsetof(attn_params, precision), sizeof *given);
}

void attn_options_init(attn_options *options)
{
    if (!options)
        return;
    *options = (attn_options){.size = sizeof *options, .isa = ATTN_ISA_BEST};
}

bool attn_options_read(attn_options *read, const attn_options *given)
{
    attn_options_init(read);
    return !given || copy_known(read, given, given->size, offsetof(attn_options, parallel_for),
                                sizeof *given);
}
