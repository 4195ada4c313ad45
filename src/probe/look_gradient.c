/* The gradient by the weights, and what of it is for the number that the model tells: (P∘∂y/∂P)⁺,
 * ∂y/∂P = dO·Vᵀ. */
#include <stdlib.h>

#include "probe/look_pass.h"

static bool allocate(struct look_pass *pass, const struct attention_record *record)
{
    struct look_gradient *gradient = &pass->gradient;
    const size_t key_heads = (size_t)record->v.shape[1], d = (size_t)record->v.shape[3];
    const size_t rows = (size_t)pass->tile_rows;
    gradient->values = calloc(key_heads * pass->tokens, d * sizeof(float));
    gradient->d_o = calloc(rows, d * sizeof(float));
    gradient->d_weights = calloc(rows, pass->tokens * sizeof(float));
    return gradient->values && gradient->d_o && gradient->d_weights;
}

void look_gradient_release(struct look_gradient *gradient)
{
    free(gradient->values);
    free(gradient->d_o);
    free(gradient->d_weights);
    *gradient = (struct look_gradient){0};
}

static void multiply_tile(struct look_pass *pass, const struct attention_record *record,
                          const attn_tensor *d_o, int64_t head, int64_t row, int64_t rows,
                          int64_t keys, float *tile)
{
    struct look_gradient *gradient = &pass->gradient;
    const int64_t tokens = (int64_t)pass->tokens, d = record->v.shape[3];
    const int64_t shared = pass->heads / record->v.shape[1];
    const struct linear values = {.weight = gradient->values + head / shared * tokens * d,
                                  .in = d,
                                  .out = keys,
                                  .layout = LINEAR_OUT_IN};
    look_copy_rows(d_o, head, row, rows, gradient->d_o);
    linear_product(&values, rows, gradient->d_o, d, gradient->d_weights, keys);
    for (int64_t n = 0; n < rows * keys; n++) {
        const float product = tile[n] * gradient->d_weights[n];
        tile[n] = product < 0.0f ? 0.0f : product; /* NaN stays */
    }
}

bool look_gradient_observe(struct look_pass *pass, const struct compute *compute,
                           const struct attention_record *record, const attn_tensor *d_o,
                           struct attn_error *error)
{
    struct look_gradient *gradient = &pass->gradient;
    if (!gradient->values && !allocate(pass, record))
        return attn_error_memory(error);
    const int64_t tokens = (int64_t)pass->tokens, d = record->v.shape[3];
    for (int64_t head = 0; head < record->v.shape[1]; head++)
        look_copy_rows(&record->v, head, 0, tokens, gradient->values + head * tokens * d);
    return look_collect_heads(pass, compute, record, multiply_tile, d_o, error);
}
