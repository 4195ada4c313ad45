/* Matrices of made-up weights in every stored type. */
#ifndef ATTN_TESTS_STORED_WEIGHTS_H
#define ATTN_TESTS_STORED_WEIGHTS_H

#include "nn/weight_matrix.h"

/* [out][in] of numbers about 1 in size, other ones for another seed, `shift` bytes behind an
 * aligned place: newly allocated, with nothing behind the last byte. */
struct weight_matrix stored_weights(enum attn_matrix_type type, int64_t out, int64_t in,
                                    uint32_t seed, size_t shift);
void stored_weights_release(struct weight_matrix *matrix, size_t shift);

/* "f32", "q4_1", … */
const char *matrix_type_name(enum attn_matrix_type type);

/* Σ w·x in double, and *size = Σ |w·x|. */
double stored_product(const float *weights, int64_t in, const float *x, double *size);

#endif
