/* The weights of a layer's heads, row by row, for what is counted and not kept. */
#ifndef ATTN_PROBE_HEAD_ROWS_H
#define ATTN_PROBE_HEAD_ROWS_H

#include "model/model_observer.h"

/* Rows that are rebuilt at once, of one head or of several: enough for several threads. */
enum { HEAD_ROWS_TILE = 128 };

/* Sees heads one behind the other, from 0, each with all its rows, from 0. */
struct head_rows_visitor {
    void (*begin)(void *user, int64_t head);
    /* weights[keys]: a key that the row does not see has weight 0. They stand until it returns. */
    void (*take)(void *user, int64_t row, const float *weights);
    void (*end)(void *user, int64_t head);
    void *user;
};

/* tile: HEAD_ROWS_TILE · keys floats. */
bool head_rows_visit(const struct compute *compute, const struct attention_record *record,
                     float *tile, const struct head_rows_visitor *visitor,
                     struct attn_error *error);

#endif
