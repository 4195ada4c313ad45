/* Head by head, and the mean over a layer's heads: what weights and gradients have in common. */
#include <string.h>

#include "probe/look_pass.h"

/* Rows of one tile that have ended: those of units first..first+count−1. */
struct ended {
    size_t first, count;
};

static void add_to_mean(struct look_pass *pass, size_t place, const struct look_row *row,
                        size_t seen, double total)
{
    double *mean = pass->mean + place * pass->look->units;
    for (size_t unit = 0; unit < seen; unit++)
        mean[unit] += (double)row->units[unit];
    pass->mean_totals[place] += total;
}

/* One head's rows first..first+rows−1, of `keys` numbers each. */
static struct ended take_rows(struct look_pass *pass, int64_t head, struct look_row *row,
                              int64_t first, int64_t rows, int64_t keys, const float *tile,
                              bool causal, bool mean)
{
    const bool alone = look_wants_head(pass, head);
    const bool shares = pass->settings->measure != LOOK_WEIGHTS;
    struct ended ended = {0};
    for (int64_t i = 0; i < rows; i++) {
        const size_t token = (size_t)(first + i);
        if (!look_row_take(pass->group, pass->tokens, row, token, tile + i * keys,
                           causal ? token + 1 : (size_t)keys))
            continue;
        const size_t unit = (size_t)pass->group[token];
        const size_t seen = causal ? unit + 1 : pass->look->units;
        const double total = shares ? look_row_total(row, seen) : 0.0;
        if (ended.count == 0)
            ended.first = unit;
        if (mean)
            add_to_mean(pass, ended.count, row, seen, total);
        ended.count++;
        if (alone)
            look_keep_head(pass, head, unit, row->units, total);
        look_row_clear(row, seen);
    }
    return ended;
}

static void keep_mean(struct look_pass *pass, const struct ended *ended)
{
    const size_t units = pass->look->units;
    const double heads = (double)pass->heads;
    for (size_t place = 0; place < ended->count; place++) {
        double *row = pass->mean + place * units;
        for (size_t unit = 0; unit < units; unit++)
            row[unit] /= heads;
        look_keep_layer(pass, ended->first + place, row, pass->mean_totals[place] / heads);
    }
    memset(pass->mean, 0, ended->count * units * sizeof *pass->mean);
    memset(pass->mean_totals, 0, ended->count * sizeof *pass->mean_totals);
}

/* All rows of neighbouring heads, tile by tile. */
static bool collect_run(struct look_pass *pass, const struct compute *compute,
                        const struct attention_record *record, int64_t head, int64_t heads,
                        bool mean, look_change_tile *change, const attn_tensor *d_o,
                        struct attn_error *error)
{
    const int64_t tokens = (int64_t)pass->tokens;
    const bool causal = look_is_causal(record);
    for (int64_t n = 0; n < heads; n++)
        look_row_clear(&pass->rows[n], pass->look->units);
    for (int64_t row = 0; row < tokens; row += pass->tile_rows) {
        const int64_t rows = tokens - row < pass->tile_rows ? tokens - row : pass->tile_rows;
        const int64_t keys = look_tile(pass, compute, record, head, heads, row, rows, error);
        if (keys < 0)
            return false;
        struct ended ended = {0};
        for (int64_t n = 0; n < heads; n++) {
            float *tile = pass->tile + n * rows * keys;
            if (change)
                change(pass, record, d_o, head + n, row, rows, keys, tile);
            ended = take_rows(pass, head + n, &pass->rows[n], row, rows, keys, tile, causal, mean);
        }
        if (mean)
            keep_mean(pass, &ended);
    }
    return true;
}

bool look_collect_alone(struct look_pass *pass, const struct compute *compute,
                        const struct attention_record *record, look_change_tile *change,
                        const attn_tensor *d_o, struct attn_error *error)
{
    for (int64_t head = 0; head < pass->heads;) {
        int64_t heads = 0;
        while (heads < pass->tile_heads && head + heads < pass->heads &&
               look_wants_head(pass, head + heads))
            heads++;
        if (heads > 0 &&
            !collect_run(pass, compute, record, head, heads, false, change, d_o, error))
            return false;
        head += heads > 0 ? heads : 1;
    }
    return true;
}

bool look_collect_heads(struct look_pass *pass, const struct compute *compute,
                        const struct attention_record *record, look_change_tile *change,
                        const attn_tensor *d_o, struct attn_error *error)
{
    if (look_wants_mean(pass))
        return collect_run(pass, compute, record, 0, pass->heads, true, change, d_o, error);
    return look_collect_alone(pass, compute, record, change, d_o, error);
}

bool look_weights_observe(struct look_pass *pass, const struct compute *compute,
                          const struct attention_record *record, struct attn_error *error)
{
    return look_collect_heads(pass, compute, record, NULL, NULL, error);
}
