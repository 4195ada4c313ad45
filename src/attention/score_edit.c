#include "attention/score_edit.h"

#include <math.h>

/* Position of a query among the keys, moved by a window side and cut to 0..keys: the parts are
 * within ±2⁶⁰, so that no sum of them leaves 64 bits. */
static int64_t clamp_key(int64_t position, int64_t keys)
{
    return position < 0 ? 0 : position > keys ? keys : position;
}

struct attn_key_range attn_keys_of_rows(const struct attn_problem *problem, int64_t batch,
                                        int64_t first, int64_t rows)
{
    int64_t length = problem->key_lengths ? problem->key_lengths[batch] : problem->keys;
    struct attn_key_range range = {0, length};
    if (problem->reach_left != ATTN_WINDOW_OPEN)
        range.begin = clamp_key(first + problem->offset - problem->reach_left, length);
    if (problem->reach_right != ATTN_WINDOW_OPEN)
        range.end = clamp_key(first + rows + problem->offset + problem->reach_right, length);
    if (range.end < range.begin)
        range.end = range.begin;
    return range;
}

bool attn_tile_needs_edit(const struct attn_problem *problem, const struct attn_tile *tile)
{
    if (problem->changes_scores)
        return true;
    /* The first row reaches least far right, the last row least far left. */
    struct attn_key_range first = attn_keys_of_rows(problem, tile->batch, tile->query, 1);
    struct attn_key_range last =
        attn_keys_of_rows(problem, tile->batch, tile->query + tile->rows - 1, 1);
    return first.end < tile->key + tile->keys || last.begin > tile->key;
}

/* The final score of one key for one query. */
static float final_score(const struct attn_problem *problem, int64_t b, int64_t h, int64_t i,
                         int64_t j, float s)
{
    if (problem->soft_cap > 0)
        s = problem->soft_cap * tanhf(s / problem->soft_cap);
    if (problem->has_bias) {
        float bias = *attn_element(&problem->bias, b, h, i, j);
        if (bias == -INFINITY)
            return -INFINITY; /* an exclusion, even where s is NaN */
        s += bias;
    }
    if (problem->alibi_slopes) {
        int64_t distance = i + problem->offset - j;
        s -= problem->alibi_slopes[h] * (float)(distance < 0 ? -distance : distance);
    }
    return s;
}

static bool is_kept(const struct attn_problem *problem, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const attn_tensor *keep = &problem->keep;
    return !problem->has_keep ||
           ((const unsigned char *)keep->data)[b * keep->stride[0] + h * keep->stride[1] +
                                               i * keep->stride[2] + j * keep->stride[3]];
}

void attn_edit_scores(const struct attn_problem *problem, const struct attn_tile *tile, float *s)
{
    for (int64_t n = 0; n < tile->rows; n++) {
        int64_t i = tile->query + n;
        struct attn_key_range kept = attn_keys_of_rows(problem, tile->batch, i, 1);
        for (int64_t t = 0; t < tile->keys; t++) {
            int64_t j = tile->key + t;
            float *score = &s[t * tile->lanes + n];
            if (j < kept.begin || j >= kept.end || !is_kept(problem, tile->batch, tile->head, i, j))
                *score = -INFINITY;
            else if (problem->changes_scores)
                *score = final_score(problem, tile->batch, tile->head, i, j, *score);
        }
    }
}
