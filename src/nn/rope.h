/* Rotary position embedding (J. Su et al., "RoFormer" (2021), eq. 34): pair i of a head of d
 * elements turns by the angle position·theta^(−2i/d). */
#ifndef ATTN_NN_ROPE_H
#define ATTN_NN_ROPE_H

#include <stdint.h>

/* Which two elements are pair i: the order in which the rows of the projections lie. */
enum rope_pairs {
    ROPE_HALVES,    /* i and i + d/2: Hugging Face's Llama */
    ROPE_NEIGHBOURS /* 2i and 2i + 1: the paper's, and Llama's in GGUF files, whose rows of Wq and
                       Wk are reordered for it. Scores are the same. */
};

struct rope {
    enum rope_pairs pairs;
    int64_t d; /* elements of a head; even */
    float theta;
};

/* cosines and sines, each [tokens][d/2], of positions first..first+tokens−1. Frequencies and angles
 * are f32 as in Transformers' LlamaRotaryEmbedding, so that far positions agree with it. */
void rope_table(const struct rope *rope, int64_t first, int64_t tokens, float *cosines,
                float *sines);

/* Turns x[tokens][heads·d] in place, `stride` elements a token; row t by row t of the table. */
void rope_turn(const struct rope *rope, const float *cosines, const float *sines, int64_t tokens,
               int64_t heads, int64_t stride, float *x);

/* The backward pass: from the gradient of what was turned that of what it was, in place. A turn's
 * transpose is the turn by the opposite angle. */
void rope_turn_back(const struct rope *rope, const float *cosines, const float *sines,
                    int64_t tokens, int64_t heads, int64_t stride, float *dx);

#endif
