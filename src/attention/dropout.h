/* Where the weights of a tile stand among the random numbers of dropout. */
#ifndef ATTN_ATTENTION_DROPOUT_H
#define ATTN_ATTENTION_DROPOUT_H

#include "attention/exclusion.h"

/* For attn_kernels.dropout. Counters are 32 bits wide and wrap. */
static inline struct attn_dropout_place attn_dropout_place_of(const struct attn_problem *problem,
                                                              const struct attn_tile *tile)
{
    const attn_params *params = &problem->params;
    return (struct attn_dropout_place){
        .seed = params->dropout_seed,
        .key = (uint32_t)tile->key,
        .row = (uint32_t)tile->query + (uint32_t)params->dropout_query,
        .head = (uint32_t)tile->head,
        .batch = (uint32_t)tile->sequence->index + (uint32_t)params->dropout_batch,
        .threshold = problem->dropout_threshold,
        .kept = (float)problem->dropout_kept,
    };
}

#endif
