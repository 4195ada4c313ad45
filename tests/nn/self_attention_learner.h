/* A self-attention layer with everything that one step of learning needs, its parameters in any
 * arrangement in memory, and beside it the same numbers for the reference. */
#ifndef ATTN_TESTS_SELF_ATTENTION_LEARNER_H
#define ATTN_TESTS_SELF_ATTENTION_LEARNER_H

#include "self_attention_reference.h"

/* How query, key and value lie; their gradients lie likewise, but for one case. */
enum arrangement {
    SEPARATE,               /* [out][in] each, and gaps between */
    SEPARATE_IN_OUT,        /* [in][out] each */
    PACKED,                 /* parts of [3·out][in] */
    PACKED_IN_OUT,          /* parts of [in][3·out] */
    PACKED_GRADIENTS_APART, /* PACKED, the gradients as with SEPARATE */
    PACKED_BIASES_APART,    /* parts of [3·out][in], with three biases */
    ARRANGEMENTS
};

struct learner_settings {
    enum arrangement arrangement;
    int64_t width, heads, d;
    enum self_attention_sight sight;
    struct packed_batch batch;
    struct attention_dropout dropout;
};

enum learner_block { LEARNER_VALUES, LEARNER_GRADIENTS, LEARNER_BLOCKS };

/* Where a projection's parameters begin in memory. */
struct learner_place {
    float *weight, *bias;
};

struct learner {
    struct learner_settings settings;
    struct self_attention layer;
    struct self_attention_gradient gradient;
    float *blocks[LEARNER_BLOCKS]; /* what layer and gradient point into */
    struct learner_place places[LEARNER_BLOCKS][REFERENCE_PROJECTIONS];
    float *x, *dy, *y, *dx;   /* [tokens][width] */
    float *saved, *workspace; /* exactly as much as is asked for */

    struct reference_layer reference;
    double *numbers;                              /* of the reference: weights, biases, then x */
    int64_t number_count;                         /* begin[LEARNER_END] */
    int64_t begin[2 * REFERENCE_PROJECTIONS + 2]; /* of each kind in numbers */
};

/* Kinds of numbers: the weights of the four projections, then their biases, then x. */
enum { LEARNER_BIASES = REFERENCE_PROJECTIONS, LEARNER_X = 2 * REFERENCE_PROJECTIONS, LEARNER_END };

/* Numbers of each kind are filled; gradients, y, dx and workspaces are NaN. */
struct learner make_learner(const struct learner_settings *settings);
void free_learner(struct learner *learner);

/* Where a number of the reference, a weight or a bias, or its gradient stands in the blocks. */
float *learner_number(const struct learner *learner, enum learner_block block, int64_t number);

/* A step's two halves. */
bool learner_forward(const struct compute *compute, struct learner *learner,
                     struct attn_error *error);
bool learner_backward(const struct compute *compute, struct learner *learner,
                      enum gradient_mode dx_mode, struct attn_error *error);

/* Both halves, gradients SET, or a failed test. */
void learner_step(const struct compute *compute, struct learner *learner);

/* The gradients of all numbers, in their order, newly allocated. */
float *learner_gradients(const struct learner *learner);

/* Sets the mode of all four gradients. */
void learner_set_mode(struct learner *learner, enum gradient_mode mode);

#endif
