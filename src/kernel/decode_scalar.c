#include "kernel/decode_scalar.h"

#include <math.h>
#include <string.h>

#include "kernel/storage_scalar.h"

enum { PIECE = 64 /* elements of a row that are widened at once */ };

static const char *row_of(const struct attn_stored_rows *rows, int64_t j)
{
    return rows->table ? rows->table[j] : (const char *)rows->data + j * rows->stride;
}

static int64_t element_bytes(enum attn_storage storage)
{
    return storage == ATTN_STORAGE_F32 ? 4 : storage == ATTN_STORAGE_I8 ? 1 : 2;
}

/* Elements c..c+count−1 of a row, without its scale; how many those are. */
static int64_t widen_piece(enum attn_storage storage, const char *row, int64_t d, int64_t c,
                           float *piece)
{
    int64_t count = d - c < PIECE ? d - c : PIECE;
    attn_widen_scalar(storage, row + c * element_bytes(storage), 1.0f, count, piece);
    return count;
}

static void pack(const float *x, int64_t dim_stride, int64_t d, float *row)
{
    memset(row, 0, (size_t)attn_decode_width(d) * sizeof *row);
    for (int64_t c = 0; c < d; c++)
        row[c] = x[c * dim_stride];
}

static void unpack(const float *row, int64_t d, float *x, int64_t dim_stride)
{
    for (int64_t c = 0; c < d; c++)
        x[c * dim_stride] = row[c];
}

static void scores(enum attn_storage storage, const float *queries, int64_t count, int64_t d,
                   const struct attn_stored_rows *k, int64_t keys, float scale, float *s)
{
    const int64_t stride = attn_decode_stride(count), width = attn_decode_width(d);
    for (int64_t j = 0; j < keys; j++) {
        float sum[ATTN_DECODE_QUERIES] = {0}, piece[PIECE];
        for (int64_t c = 0; c < d; c += PIECE) {
            int64_t elements = widen_piece(storage, row_of(k, j), d, c, piece);
            for (int64_t i = 0; i < count; i++)
                for (int64_t e = 0; e < elements; e++)
                    sum[i] += queries[i * width + c + e] * piece[e];
        }
        for (int64_t i = 0; i < count; i++) {
            s[j * stride + i] = scale * sum[i];
            if (k->scales)
                s[j * stride + i] *= k->scales[j * k->scale_stride];
        }
    }
}

/* A weight of −0 is that of an excluded key. */
static bool all_excluded(const float *weights, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (weights[i] != 0.0f || !signbit(weights[i]))
            return false;
    return true;
}

static void blend(enum attn_storage storage, const float *s, int64_t count, int64_t begin,
                  int64_t end, bool skips, const struct attn_stored_rows *v, int64_t d,
                  float *outputs)
{
    const int64_t stride = attn_decode_stride(count), width = attn_decode_width(d);
    for (int64_t j = begin; j < end; j++) {
        const float *weights = s + j * stride;
        if (skips && all_excluded(weights, count))
            continue;
        float piece[PIECE], scale = v->scales ? v->scales[j * v->scale_stride] : 1.0f;
        for (int64_t c = 0; c < d; c += PIECE) {
            int64_t elements = widen_piece(storage, row_of(v, j), d, c, piece);
            for (int64_t i = 0; i < count; i++)
                for (int64_t e = 0; e < elements; e++)
                    outputs[i * width + c + e] += weights[i] * scale * piece[e];
        }
    }
}

#define DECODE_STORAGE(storage, name)                                                              \
    static void scores_##name(const float *queries, int64_t count, int64_t d,                      \
                              const struct attn_stored_rows *k, int64_t keys, float scale,         \
                              float *s)                                                            \
    {                                                                                              \
        scores(storage, queries, count, d, k, keys, scale, s);                                     \
    }                                                                                              \
    static void blend_##name(float *s, int64_t count, int64_t begin, int64_t end, bool skips,      \
                             const struct attn_stored_rows *v, int64_t d, float *outputs)          \
    {                                                                                              \
        blend(storage, s, count, begin, end, skips, v, d, outputs);                                \
    }

DECODE_STORAGE(ATTN_STORAGE_F32, f32)
DECODE_STORAGE(ATTN_STORAGE_F16, f16)
DECODE_STORAGE(ATTN_STORAGE_BF16, bf16)
DECODE_STORAGE(ATTN_STORAGE_I8, i8)

/* exp(s − m), 0 where s = −inf, also where both are. */
static float weight_of(float s, float m)
{
    return s == -INFINITY ? 0.0f : expf(s - m);
}

static bool softmax(float *s, int64_t count, int64_t keys, float *m, float *l, float *outputs,
                    int64_t width)
{
    const int64_t stride = attn_decode_stride(count);
    bool excluded = false;
    for (int64_t i = 0; i < count; i++) {
        float after = m[i];
        for (int64_t j = 0; j < keys; j++)
            if (s[j * stride + i] > after)
                after = s[j * stride + i];
        if (m[i] < after) {
            float factor = weight_of(m[i], after);
            l[i] *= factor;
            for (int64_t c = 0; c < width; c++)
                outputs[i * width + c] *= factor;
            m[i] = after;
        }
        /* In double the few sums of a block lose nothing that shows in float. */
        double sum = 0;
        for (int64_t j = 0; j < keys; j++) {
            float *score = &s[j * stride + i];
            if (*score == -INFINITY) {
                excluded = true;
                *score = -0.0f;
            } else {
                *score = expf(*score - (after == -INFINITY ? 0.0f : after));
                sum += (double)*score;
            }
        }
        l[i] += (float)sum;
    }
    return excluded;
}

static void merge(float *m, float *l, float *output, float part_m, float part_l, const float *part,
                  int64_t width)
{
    if (part_l == 0.0f)
        return;
    float after = part_m > *m ? part_m : *m;
    float factor = weight_of(*m, after), part_factor = weight_of(part_m, after);
    *m = after;
    *l = *l * factor + part_l * part_factor;
    for (int64_t c = 0; c < width; c++)
        output[c] = output[c] * factor + part[c] * part_factor;
}

static void finish(float *output, float l, int64_t width)
{
    /* Adding 0 makes −0 to 0: which of them a sum ends in depends on keys that were skipped. */
    for (int64_t c = 0; c < width; c++)
        output[c] = l == 0.0f ? 0.0f : output[c] / l + 0.0f;
}

static bool is_finite(const float *row, int64_t width)
{
    for (int64_t c = 0; c < width; c++)
        if (!isfinite(row[c]))
            return false;
    return true;
}

const struct attn_decode_kernels attn_decode_kernels_scalar = {
    .storage = {[ATTN_STORAGE_F32] = {pack, unpack, scores_f32, blend_f32},
                [ATTN_STORAGE_F16] = {pack, unpack, scores_f16, blend_f16},
                [ATTN_STORAGE_BF16] = {pack, unpack, scores_bf16, blend_bf16},
                [ATTN_STORAGE_I8] = {pack, unpack, scores_i8, blend_i8}},
    .softmax = softmax,
    .merge = merge,
    .finish = finish,
    .is_finite = is_finite,
};
