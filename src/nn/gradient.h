/* What every backward function of this room does with a gradient that it computes. */
#ifndef ATTN_NN_GRADIENT_H
#define ATTN_NN_GRADIENT_H

/* A sum over several batches is ADDed to; the first of them SETs, which saves clearing. */
enum gradient_mode { GRADIENT_SET, GRADIENT_ADD };

#endif
