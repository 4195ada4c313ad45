#include "attention/inspect_panel.h"

#include <math.h>
#include <string.h>

_Static_assert(ATTN_TOP_LIMIT <= ATTN_KEY_BLOCK, "the weights of a list fit where scores are");

void attn_panel_inspection_take(struct attn_panel_inspection *panel,
                                const struct attn_inspected *inspected, int vector_lanes, int lanes,
                                struct attn_scratch *scratch)
{
    *panel = (struct attn_panel_inspection){0};
    if (inspected->wants_entropy) {
        panel->t = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
        panel->t_rest = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    }
    if (inspected->top == 0)
        return;
    const int64_t width = (inspected->top + vector_lanes - 1) / vector_lanes * vector_lanes;
    panel->top = (struct attn_top_lists){
        .lists = attn_scratch_floats(scratch, 2 * lanes, width),
        .limits = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES),
        .count = inspected->top,
        .width = width,
    };
}

void attn_panel_inspection_begin(const struct attn_panel_inspection *panel,
                                 const struct attn_inspected *inspected, int64_t rows, int lanes)
{
    if (inspected->wants_entropy) {
        memset(panel->t, 0, (size_t)lanes * sizeof *panel->t);
        memset(panel->t_rest, 0, (size_t)lanes * sizeof *panel->t_rest);
    }
    if (inspected->top == 0)
        return;
    const struct attn_top_lists *top = &panel->top;
    float no_key;
    memcpy(&no_key, &(const int32_t){-1}, sizeof no_key);
    for (int n = 0; n < lanes; n++) {
        float *scores = top->lists + n * 2 * top->width, *keys = scores + top->width;
        for (int64_t i = 0; i < top->width; i++)
            scores[i] = -INFINITY;
        for (int64_t i = 0; i < top->width; i++)
            keys[i] = no_key;
        top->limits[n] = n < rows ? -INFINITY : INFINITY;
    }
}

/* Weights of the lists to weights[count][lanes], by the arithmetic of attn_weights. */
static void weigh(const struct attn_kernels *kernels, const struct attn_top_lists *top,
                  const struct attn_inspected_rows *rows, float *weights)
{
    for (int64_t i = 0; i < top->count; i++)
        for (int64_t n = 0; n < rows->lanes; n++)
            weights[i * rows->lanes + n] =
                n < rows->rows ? top->lists[n * 2 * top->width + i] : -INFINITY;
    kernels->weights(weights, rows->lanes, top->count, rows->stat_m, rows->stat_l);
}

/* ln l − t/l, which rounding may leave a little below 0. */
static float entropy_of(const struct attn_panel_inspection *panel,
                        const struct attn_inspected_rows *rows, int64_t n)
{
    double l = (double)rows->l[n] + (double)rows->l_rest[n];
    if (l == 0.0)
        return 0.0f;
    double entropy = log(l) - ((double)panel->t[n] + (double)panel->t_rest[n]) / l;
    return entropy < 0.0 ? 0.0f : (float)entropy;
}

/* A row of the tensor; with a block table key_begin is 0. */
static int32_t key_of(const struct attn_sequence *sequence, const float *bits)
{
    int32_t key;
    memcpy(&key, bits, sizeof key);
    return key < 0 ? key : key + (int32_t)sequence->key_begin;
}

void attn_panel_inspection_write(const struct attn_kernels *kernels,
                                 const struct attn_panel_inspection *panel,
                                 const struct attn_inspected *inspected,
                                 const struct attn_inspected_rows *rows, float *scratch)
{
    const struct attn_top_lists *top = &panel->top;
    const int64_t batch = rows->sequence->batch, first = rows->sequence->query_begin + rows->query;
    if (top->count > 0)
        weigh(kernels, top, rows, scratch);
    for (int64_t n = 0; n < rows->rows; n++) {
        const bool broken = isnan(rows->stat_l[n]);
        if (inspected->wants_maximum)
            *attn_element(&inspected->maximum, batch, rows->head, first + n, 0) =
                broken ? NAN : scratch[n];
        if (inspected->wants_entropy)
            *attn_element(&inspected->entropy, batch, rows->head, first + n, 0) =
                entropy_of(panel, rows, n);
        if (!inspected->wants_top)
            continue;
        for (int64_t i = 0; i < top->count; i++) {
            *attn_element(&inspected->top_weights, batch, rows->head, first + n, i) =
                broken ? NAN : scratch[i * rows->lanes + n];
            int32_t *key = attn_address(&inspected->top_keys, (int64_t)sizeof *key, batch,
                                        rows->head, first + n, i);
            *key = key_of(rows->sequence, &top->lists[(2 * n + 1) * top->width + i]);
        }
    }
}
