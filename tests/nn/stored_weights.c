#include "stored_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "kernel/kernel.h"

static uint32_t draw(uint32_t *state)
{
    *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
    return *state >> 8;
}

/* Between 1/4 and 1/2, as f16, times 2^−shift. */
static uint16_t scale_half(uint32_t *state, unsigned shift)
{
    return (uint16_t)((13 - shift) << 10 | (draw(state) & 0x3ff));
}

/* Where a block keeps its scales (two halves, or −1), and by how much they are made smaller so that
 * weights are about 1. */
struct scales {
    int first, second;
    unsigned shift;
};

static struct scales scales_of(enum attn_matrix_type type)
{
    switch (type) {
    case ATTN_MATRIX_Q8_0:
        return (struct scales){0, -1, 6};
    case ATTN_MATRIX_Q4_0:
    case ATTN_MATRIX_Q5_0:
        return (struct scales){0, -1, 3};
    case ATTN_MATRIX_Q4_1:
    case ATTN_MATRIX_Q5_1:
        return (struct scales){0, 2, 3};
    case ATTN_MATRIX_Q4_K:
    case ATTN_MATRIX_Q5_K:
        return (struct scales){0, 2, 8};
    default:
        return (struct scales){208, -1, 10};
    }
}

static void make_number(enum attn_matrix_type type, const struct attn_kernels *kernels,
                        uint32_t *state, unsigned char *number)
{
    const float w = 2.0f * (float)draw(state) / (float)(1 << 24) - 1.0f;
    uint16_t half;
    if (type == ATTN_MATRIX_F32) {
        memcpy(number, &w, sizeof w);
        return;
    }
    kernels->narrow(type == ATTN_MATRIX_F16 ? ATTN_STORAGE_F16 : ATTN_STORAGE_BF16, &w, 1, &half);
    memcpy(number, &half, sizeof half);
}

static void make_block(enum attn_matrix_type type, uint32_t *state, unsigned char *block)
{
    const int64_t bytes = attn_matrix_block_bytes(type);
    for (int64_t n = 0; n < bytes; n++)
        block[n] = (unsigned char)draw(state);
    const struct scales scales = scales_of(type);
    const int places[] = {scales.first, scales.second};
    for (int n = 0; n < 2; n++)
        if (places[n] >= 0) {
            uint16_t half = scale_half(state, scales.shift);
            memcpy(block + places[n], &half, sizeof half);
        }
}

struct weight_matrix stored_weights(enum attn_matrix_type type, int64_t out, int64_t in,
                                    uint32_t seed, size_t shift)
{
    const int64_t block = attn_matrix_block(type), blocks = out * (in / block);
    assert_int_equal(in % block, 0);
    unsigned char *data = malloc((size_t)(blocks * attn_matrix_block_bytes(type)) + shift + 1);
    assert_non_null(data);
    uint32_t state = seed * 77 + (uint32_t)type;
    const struct attn_kernels *kernels = attn_kernels_for(ATTN_ISA_SCALAR);
    for (int64_t n = 0; n < blocks; n++) {
        unsigned char *place = data + shift + n * attn_matrix_block_bytes(type);
        if (block == 1)
            make_number(type, kernels, &state, place);
        else
            make_block(type, &state, place);
    }
    return (struct weight_matrix){type, data + shift, out, in};
}

void stored_weights_release(struct weight_matrix *matrix, size_t shift)
{
    free((unsigned char *)(uintptr_t)matrix->data - shift);
}

const char *matrix_type_name(enum attn_matrix_type type)
{
    static const char *const names[ATTN_MATRIX_TYPES] = {
        "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"};
    return names[type];
}

double stored_product(const float *weights, int64_t in, const float *x, double *size)
{
    double sum = 0.0;
    *size = 0.0;
    for (int64_t c = 0; c < in; c++) {
        sum += (double)weights[c] * (double)x[c];
        *size += fabs((double)weights[c] * (double)x[c]);
    }
    return sum;
}
