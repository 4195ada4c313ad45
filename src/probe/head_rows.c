#include "probe/head_rows.h"

/* Rows first..first + rows of heads head..head + heads into the tile, [heads][rows][keys]. */
static bool rebuild(const struct compute *compute, const struct attention_record *record,
                    int64_t head, int64_t heads, int64_t first, int64_t rows, float *tile,
                    struct attn_error *error)
{
    const int64_t begin[4] = {0, head, first, 0};
    const attn_tensor weights =
        attn_tensor_packed(tile, ATTN_F32, 1, heads, rows, record->k.shape[2]);
    return attn_weights(compute->attention, record->params, &record->q, &record->k, &record->stats,
                        begin, &weights) == ATTN_SUCCESS ||
           attn_error_set(error, "attention weights: %s", attn_message(compute->attention));
}

/* Short texts: several whole heads at a time. */
static bool visit_whole(const struct compute *compute, const struct attention_record *record,
                        float *tile, const struct head_rows_visitor *visitor,
                        struct attn_error *error)
{
    const int64_t rows = record->q.shape[2], keys = record->k.shape[2], all = record->q.shape[1];
    const int64_t at_once = HEAD_ROWS_TILE / rows;
    for (int64_t first = 0; first < all; first += at_once) {
        const int64_t heads = all - first < at_once ? all - first : at_once;
        if (!rebuild(compute, record, first, heads, 0, rows, tile, error))
            return false;
        for (int64_t n = 0; n < heads; n++) {
            visitor->begin(visitor->user, first + n);
            for (int64_t i = 0; i < rows; i++)
                visitor->take(visitor->user, i, tile + (n * rows + i) * keys);
            visitor->end(visitor->user, first + n);
        }
    }
    return true;
}

/* Long ones: a head in several tiles. */
static bool visit_tiles(const struct compute *compute, const struct attention_record *record,
                        int64_t head, float *tile, const struct head_rows_visitor *visitor,
                        struct attn_error *error)
{
    const int64_t rows = record->q.shape[2], keys = record->k.shape[2];
    visitor->begin(visitor->user, head);
    for (int64_t first = 0; first < rows; first += HEAD_ROWS_TILE) {
        const int64_t count = rows - first < HEAD_ROWS_TILE ? rows - first : HEAD_ROWS_TILE;
        if (!rebuild(compute, record, head, 1, first, count, tile, error))
            return false;
        for (int64_t i = 0; i < count; i++)
            visitor->take(visitor->user, first + i, tile + i * keys);
    }
    visitor->end(visitor->user, head);
    return true;
}

bool head_rows_visit(const struct compute *compute, const struct attention_record *record,
                     float *tile, const struct head_rows_visitor *visitor, struct attn_error *error)
{
    if (record->q.shape[2] <= HEAD_ROWS_TILE)
        return visit_whole(compute, record, tile, visitor, error);
    bool done = true;
    for (int64_t head = 0; done && head < record->q.shape[1]; head++)
        done = visit_tiles(compute, record, head, tile, visitor, error);
    return done;
}
