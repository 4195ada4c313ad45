/* Random numbers by counting: what is drawn depends on what it is drawn for, never on what was
 * drawn before. So nothing has to be saved for a resume, and processes draw what one would. */
#ifndef ATTN_TRAIN_RANDOM_H
#define ATTN_TRAIN_RANDOM_H

#include <stdint.h>

/* What a draw is for: two purposes never share one. */
enum random_purpose {
    RANDOM_ORDER,         /* of an epoch's windows; `a`: epoch, `b`: place */
    RANDOM_SHIFT,         /* of an epoch's windows in the text; `a`: epoch */
    RANDOM_MASK,          /* of a step's words; `a`: step, `b`: token of the step's batch */
    RANDOM_MASK_HELD_OUT, /* of held-out words; `b`: token */
    RANDOM_FORCED_MASK /* in a window that drew none; `a`: step, `b`: first token of the window */
};

/* Four independent words: Philox4x32-10 (base/philox.h) with counter = (b low, b high, a low,
 * purpose). `a` counts steps or epochs, of which only 32 bits are seen. */
void random_draw(uint64_t seed, enum random_purpose purpose, int64_t a, int64_t b,
                 uint32_t words[4]);

/* A word to one of 0..limit−1, 0 < limit ≤ 2³², nearly uniform: no more than limit/2³² off. */
uint32_t random_below(uint32_t word, int64_t limit);

#endif
