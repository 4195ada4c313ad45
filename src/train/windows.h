/* How a text is cut into pieces of one length, and in which order they are learned from. */
#ifndef ATTN_TRAIN_WINDOWS_H
#define ATTN_TRAIN_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* An epoch takes `count` windows that do not overlap, in an order of its own; where they begin in
 * the text is shifted from epoch to epoch, so that every token comes to stand at every place. What
 * is drawn depends on seed and epoch alone. */
struct windows {
    uint64_t seed;
    int64_t length; /* tokens of a window */
    int64_t count;  /* windows of an epoch */
    int64_t slack;  /* tokens of the text that an epoch leaves out; the shift is 0..slack */
    int64_t epoch;  /* whose order is below; −1 at first */
    int64_t shift;
    int32_t *order; /* [count] */
};

/* Over a text of `tokens` tokens. Refused: one shorter than a window. */
bool windows_create(struct windows *windows, int64_t tokens, int64_t length, uint64_t seed,
                    struct attn_error *error);
void windows_destroy(struct windows *windows); /* zeros are allowed */

/* The first token of window number `number` ≥ 0 of all that a training ever takes: number div count
 * is its epoch, number mod count its place there. */
int64_t windows_begin(struct windows *windows, int64_t number);

#endif
