#include "kernel/edit_scalar.h"

#include <math.h>

void attn_soft_cap_scalar(float *x, int64_t count, float cap)
{
    /* In double no quotient of two floats leaves the range, however small or large they are. */
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((double)cap * tanh((double)x[i] / (double)cap));
}

void attn_add_bias_scalar(float *s, int lanes, int64_t keys, const float *bias,
                          int64_t query_stride, int64_t key_stride, int64_t rows)
{
    for (int64_t j = 0; j < keys; j++)
        for (int64_t n = 0; n < rows; n++) {
            float b = bias[n * query_stride + j * key_stride];
            s[j * lanes + n] = b == -INFINITY ? -INFINITY : s[j * lanes + n] + b;
        }
}

void attn_subtract_distance_scalar(float *s, int lanes, int64_t keys, float slope, int64_t first)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++) {
            int64_t distance = first + n - j;
            s[j * lanes + n] -= slope * (float)(distance < 0 ? -distance : distance);
        }
}

void attn_exclude_scalar(float *s, int lanes, int64_t keys, const uint32_t *excluded)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++)
            if (excluded[j / 32 * lanes + n] >> j % 32 & 1)
                s[j * lanes + n] = -INFINITY;
}

void attn_exclusion_words_scalar(const unsigned char *keep, int64_t count, uint32_t *words)
{
    for (int64_t t = 0; t < count; t++) {
        if (t % 32 == 0)
            words[t / 32] = 0;
        words[t / 32] |= (uint32_t)(keep[t] == 0) << t % 32;
    }
}
