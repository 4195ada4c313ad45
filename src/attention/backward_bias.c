#include "attention/backward_bias.h"

#include <math.h>

int64_t attn_backward_bias_rows(const struct attn_backward_run *run)
{
    const int64_t *shape = run->backward.d_bias.shape;
    return shape[0] * shape[1] * shape[2];
}

void attn_backward_clear_bias_row(void *state, int64_t row, int thread)
{
    const struct attn_backward_run *run = state;
    const attn_tensor *bias = &run->backward.d_bias;
    const int64_t *shape = bias->shape;
    (void)thread;
    float *numbers =
        attn_element(bias, row / shape[2] / shape[1], row / shape[2] % shape[1], row % shape[2], 0);
    for (int64_t j = 0; j < shape[3]; j++)
        numbers[j * bias->stride[3]] = 0.0f;
}

void attn_backward_add_bias(const struct attn_backward_run *run, const struct attn_tile *tile,
                            const float *ds)
{
    const attn_tensor *bias = &run->backward.d_bias;
    const struct attn_sequence *sequence = tile->sequence;
    float *first =
        attn_element(bias, sequence->batch, tile->head, sequence->query_begin + tile->query,
                     sequence->key_begin + tile->key);
    /* What goes to one number is summed within the tile first. */
    bool one_query = bias->stride[2] == 0, one_key = bias->stride[3] == 0;
    int64_t rows = one_query ? 1 : tile->rows, keys = one_key ? 1 : tile->keys;
    int64_t row_sums = one_query ? tile->rows : 1, key_sums = one_key ? tile->keys : 1;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t j = 0; j < keys; j++) {
            double sum = 0.0;
            for (int64_t i = n; i < n + row_sums; i++)
                for (int64_t t = j; t < j + key_sums; t++)
                    sum += (double)ds[t * tile->lanes + i];
            float *number = first + n * bias->stride[2] + j * bias->stride[3];
            *number = (float)((double)*number + sum);
        }
}

void attn_backward_sink(void *state, int64_t head, int thread)
{
    const struct attn_backward_run *run = state;
    const struct attn_problem *problem = &run->problem;
    double sink = (double)problem->sinks[head], sum = 0.0;
    (void)thread;
    for (int64_t b = 0; sink != -INFINITY && b < problem->batch; b++)
        for (int64_t i = 0; i < problem->queries; i++) {
            int64_t row = (b * problem->heads + head) * problem->queries + i;
            double m = (double)*attn_element(&problem->stats, b, head, i, 0);
            double l = (double)*attn_element(&problem->stats, b, head, i, 1);
            if (l != 0.0)
                sum -= exp(sink - m) / l * (double)run->shared.delta[row];
        }
    *attn_element(&run->backward.d_sinks, 0, head, 0, 0) = (float)sum;
}
