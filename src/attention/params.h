/* Settings structs as callers hand them over: of this version's size or an earlier one's. */
#ifndef ATTN_ATTENTION_PARAMS_H
#define ATTN_ATTENTION_PARAMS_H

#include <stdbool.h>

#include "attn.h"

/* The defaults, overwritten with what is given as far as it goes (NULL: nothing). False where its
 * size is none of a known version's. */
bool attn_params_read(attn_params *read, const attn_params *given);
bool attn_options_read(attn_options *read, const attn_options *given);

#endif
