/* What a model learns: named tensors, all values in one block and all gradients in another of the
 * same layout, so that an optimizer, a norm or a sum over processes is one loop. */
#ifndef ATTN_MODEL_PARAMETERS_H
#define ATTN_MODEL_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PARAMETER_NAME_SIZE = 96, PARAMETER_MAX_RANK = 2 };

struct parameter {
    char name[PARAMETER_NAME_SIZE]; /* as the checkpoint spells it */
    int rank;                       /* 1, or 2 for a matrix */
    int64_t shape[PARAMETER_MAX_RANK];
    int64_t begin, count; /* in values and gradients */
};

struct parameters {
    struct parameter *items; /* in the order of begin */
    size_t item_count;
    int64_t count;    /* of all values, padding between items included */
    float *values;    /* [count], aligned; padding is 0 and stays it */
    float *gradients; /* [count], or NULL until parameters_want_gradients */
};

/* Appends a tensor; *begin is where its values will be, a multiple of 16. */
bool parameters_add(struct parameters *parameters, const char *name, int rank, const int64_t *shape,
                    int64_t *begin, struct attn_error *error);

/* Allocates all values, zeros, after the last parameters_add; and the gradients. */
bool parameters_allocate(struct parameters *parameters, struct attn_error *error);
bool parameters_want_gradients(struct parameters *parameters, struct attn_error *error);
void parameters_release(struct parameters *parameters);

#endif
