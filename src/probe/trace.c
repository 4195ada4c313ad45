#include "probe/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { TILE_ROWS = 32 };

/* The rows of one layer, one behind the other, each as long as the text was then. */
struct layer_rows {
    float *weights;
    int64_t capacity;
};

struct trace {
    int64_t layers, heads;
    int64_t first;
    int64_t tokens;
    struct layer_rows *rows; /* [layers] */
    float *tile;             /* of one head, up to TILE_ROWS rows */
    int64_t tile_capacity;
};

bool trace_create(struct trace **trace, const struct causal_settings *settings, int64_t first,
                  struct attn_error *error)
{
    *trace = NULL;
    struct trace *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    *made = (struct trace){.layers = settings->layers, .heads = settings->heads, .first = first};
    made->rows = calloc((size_t)made->layers, sizeof *made->rows);
    if (!made->rows) {
        trace_destroy(made);
        return attn_error_memory(error);
    }
    *trace = made;
    return true;
}

void trace_destroy(struct trace *trace)
{
    if (!trace)
        return;
    for (int64_t layer = 0; trace->rows && layer < trace->layers; layer++)
        free(trace->rows[layer].weights);
    free(trace->rows);
    free(trace->tile);
    free(trace);
}

int64_t trace_tokens(const struct trace *trace)
{
    return trace->tokens;
}

/* Where the row of a position begins: those from `first` on before it have first + 1, … numbers. */
static int64_t row_offset(const struct trace *trace, int64_t position)
{
    return (position * (position + 1) - trace->first * (trace->first + 1)) / 2;
}

static bool reserve(float **floats, int64_t *capacity, int64_t needed)
{
    if (needed <= *capacity)
        return true;
    int64_t wanted = needed > 2 * *capacity ? needed : 2 * *capacity;
    size_t bytes;
    if (!attn_checked_size_multiply((size_t)wanted, sizeof **floats, &bytes))
        return false;
    float *grown = realloc(*floats, bytes);
    if (!grown)
        return false;
    *floats = grown;
    *capacity = wanted;
    return true;
}

/* Adds a head's share to `count` rows of a layer from `begin` on, `keys` numbers each in the tile.
 */
static void add_tile(const struct trace *trace, float *rows, int64_t begin, int64_t count,
                     int64_t keys)
{
    const float share = 1.0f / (float)trace->heads;
    for (int64_t i = 0; i < count; i++) {
        float *row = rows + row_offset(trace, begin + i);
        for (int64_t key = 0; key <= begin + i; key++)
            row[key] += share * trace->tile[i * keys + key];
    }
}

/* After a layer's attention of new tokens, behind those that the cache held. */
static bool observe(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    struct trace *trace = user;
    const int64_t keys = record->k.shape[2], old = keys - record->q.shape[2];
    const int64_t from = old > trace->first ? old : trace->first;
    if (layer == trace->layers - 1)
        trace->tokens = keys;
    if (from >= keys)
        return true;

    struct layer_rows *rows = &trace->rows[layer];
    const int64_t begin = row_offset(trace, from), end = row_offset(trace, keys);
    if (!reserve(&rows->weights, &rows->capacity, end) ||
        !reserve(&trace->tile, &trace->tile_capacity, TILE_ROWS * keys))
        return attn_error_memory(error);
    memset(rows->weights + begin, 0, (size_t)(end - begin) * sizeof *rows->weights);

    for (int64_t row = from; row < keys; row += TILE_ROWS) {
        const int64_t count = keys - row < TILE_ROWS ? keys - row : TILE_ROWS;
        attn_tensor tile = attn_tensor_packed(trace->tile, ATTN_F32, 1, 1, count, keys);
        for (int64_t head = 0; head < trace->heads; head++) {
            const int64_t place[4] = {0, head, row - old, 0};
            if (attn_weights(compute->attention, record->params, &record->q, &record->k,
                             &record->stats, place, &tile) != ATTN_SUCCESS)
                return attn_error_set(error, "attention weights: %s",
                                      attn_message(compute->attention));
            add_tile(trace, rows->weights, row, count, keys);
        }
    }
    return true;
}

struct model_observer trace_observer(struct trace *trace)
{
    return (struct model_observer){observe, trace, NULL};
}

void trace_row(const struct trace *trace, int64_t layer, int64_t position, float *weights)
{
    const int64_t begin = row_offset(trace, position);
    if (layer != TRACE_MEAN) {
        memcpy(weights, trace->rows[layer].weights + begin,
               (size_t)(position + 1) * sizeof *weights);
        return;
    }
    for (int64_t key = 0; key <= position; key++) {
        double sum = 0.0;
        for (int64_t n = 0; n < trace->layers; n++)
            sum += (double)trace->rows[n].weights[begin + key];
        weights[key] = (float)(sum / (double)trace->layers);
    }
}

bool trace_merge(const struct trace *trace, int64_t layer, const int32_t *row_of, size_t rows,
                 const int32_t *column_of, size_t columns, float *merged, struct attn_error *error)
{
    float *weights = calloc((size_t)trace->tokens + 1, sizeof *weights);
    int32_t *queries = calloc(rows + 1, sizeof *queries);
    bool done = (weights && queries) || attn_error_memory(error);
    for (size_t n = 0; done && n < rows * columns; n++)
        merged[n] = 0.0f;
    for (int64_t position = trace->first; done && position < trace->tokens; position++) {
        const int32_t row = row_of[position];
        if (row < 0)
            continue;
        queries[row]++;
        trace_row(trace, layer, position, weights);
        for (int64_t key = 0; key <= position; key++)
            if (column_of[key] >= 0)
                merged[(size_t)row * columns + (size_t)column_of[key]] += weights[key];
    }
    for (size_t row = 0; done && row < rows; row++)
        for (size_t column = 0; queries[row] > 1 && column < columns; column++)
            merged[row * columns + column] /= (float)queries[row];
    free(weights);
    free(queries);
    return done;
}
