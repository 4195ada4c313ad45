#include "attention/score_edit.h"

#include <math.h>
#include <string.h>

#include "attention/rows.h"
#include "attention/tensor_extent.h"
#include "attention/window.h"
#include "base/prefetch.h"

bool attn_scores_need_edit(const struct attn_problem *problem)
{
    return problem->soft_cap > 0 || problem->has_bias || problem->alibi_slopes ||
           problem->change_scores;
}

/* A part of the bias in f32: element (n, t) at data[n·query_stride + t·key_stride]. */
struct bias_part {
    const float *data;
    int64_t query_stride, key_stride;
};

/* 16-bit bias, widened to scratch: a run of numbers side by side at a time where there are such. */
static struct bias_part widened(const struct attn_kernels *kernels, const attn_tensor *bias,
                                const struct attn_tile *tile, const char *first, float *scratch)
{
    enum attn_storage from = attn_storage_of(bias->type);
    int64_t size = attn_type_size(bias->type);
    int64_t across = bias->stride[2], along = bias->stride[3];
    /* An axis without a stride has one number. */
    int64_t rows = across == 0 ? 1 : tile->rows, keys = along == 0 ? 1 : tile->keys;
    struct bias_part part = {scratch, across == 0 ? 0 : keys, along == 0 ? 0 : 1};
    if (along != 1 && across == 1) {
        for (int64_t t = 0; t < keys; t++)
            kernels->widen(from, first + size * along * t, 1.0f, rows, scratch + t * rows);
        return (struct bias_part){scratch, 1, along == 0 ? 0 : rows};
    }
    int64_t run = along == 1 ? keys : 1;
    for (int64_t n = 0; n < rows; n++)
        for (int64_t t = 0; t < keys; t += run)
            kernels->widen(from, first + size * (across * n + along * t), 1.0f, run,
                           scratch + n * keys + t);
    return part;
}

static struct bias_part bias_of(const struct attn_kernels *kernels,
                                const struct attn_problem *problem, const struct attn_tile *tile,
                                float *scratch)
{
    const attn_tensor *bias = &problem->bias;
    const struct attn_sequence *sequence = tile->sequence;
    const void *first =
        attn_address(bias, attn_type_size(bias->type), sequence->batch, tile->head,
                     sequence->query_begin + tile->query, sequence->key_begin + tile->key);
    int64_t size = attn_type_size(bias->type);
    for (int64_t n = 0; bias->stride[2] != 0 && bias->stride[3] == 1 && n < tile->rows; n++)
        attn_prefetch((const char *)first + size * (n * bias->stride[2] + tile->keys),
                      size * attn_tile_keys_ahead(tile));
    if (bias->type == ATTN_F32)
        return (struct bias_part){first, bias->stride[2], bias->stride[3]};
    return widened(kernels, bias, tile, first, scratch);
}

void attn_edit_scores(const struct attn_kernels *kernels, const struct attn_problem *problem,
                      const struct attn_tile *tile, const struct attn_exclusions *exclusions,
                      const struct attn_edit_scratch *scratch, float *s)
{
    const struct attn_sequence *sequence = tile->sequence;
    int lanes = tile->lanes;
    size_t size = (size_t)(tile->keys * lanes) * sizeof *s;
    if (problem->soft_cap > 0)
        kernels->soft_cap(s, tile->keys * lanes, problem->soft_cap);
    if (scratch->capped)
        memcpy(scratch->capped, s, size);
    /* Before the bias, so that nothing is added to what a bias of −inf excludes. */
    if (problem->alibi_slopes) {
        int64_t position = attn_position_add(tile->query, sequence->offset);
        kernels->subtract_distance(s, lanes, tile->keys, problem->alibi_slopes[tile->head],
                                   attn_position_add(position, -tile->key));
    }
    if (problem->has_bias) {
        struct bias_part bias = bias_of(kernels, problem, tile, scratch->bias);
        kernels->add_bias(s, lanes, tile->keys, bias.data, bias.query_stride, bias.key_stride,
                          tile->rows);
    }
    if (scratch->given)
        memcpy(scratch->given, s, size);
    if (problem->change_scores) {
        attn_score_tile view = {
            .sequence = sequence->index,
            .head = tile->head,
            .query = tile->query,
            .key = tile->key,
            .queries = tile->rows,
            .keys = tile->keys,
            .scores = s,
            .query_stride = 1,
            .key_stride = lanes,
        };
        problem->change_scores(problem->callback_user, &view);
    }
    if (exclusions->kind == ATTN_EXCLUDES_SOME)
        kernels->exclude(s, lanes, tile->keys, exclusions->words);
    else if (exclusions->kind == ATTN_EXCLUDES_ALL)
        for (int64_t i = 0; i < tile->keys * lanes; i++)
            s[i] = -INFINITY;
}
