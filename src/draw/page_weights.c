#include "draw/page_weights.h"

#include <math.h>
#include <stdlib.h>

enum {
    WEIGHT_BYTES = 2,
    LINK_BYTES = 4, /* column and weight */
    LARGEST_CODE = 65534,
    NOT_A_NUMBER_CODE = 65535,
    COLUMN_LIMIT = 65536
};

size_t page_weights_text_size(size_t bytes)
{
    return (bytes / 3 + (bytes % 3 != 0)) * 4;
}

bool page_weights_plan(const struct attention_map *map, size_t budget, struct page_weights *plan)
{
    /* map_check has bounded the number of cells, so that these products fit. */
    size_t lines = map->panel_count * map->rows;
    *plan = (struct page_weights){0, lines * map->columns * WEIGHT_BYTES};
    if (page_weights_text_size(plan->bytes) <= budget)
        return true;
    size_t strongest = budget / 4 * 3 / LINK_BYTES / lines;
    plan->strongest = strongest < 1 ? 1 : strongest < map->columns ? strongest : map->columns;
    plan->bytes = lines * plan->strongest * LINK_BYTES;
    return strongest >= 1 && map->columns <= COLUMN_LIMIT;
}

/* base64 as bytes come. */
struct base64 {
    struct attn_buffer *out;
    unsigned bits; /* of the bytes that wait */
    int waiting;
};

static void base64_flush(struct base64 *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!text->waiting)
        return;
    unsigned bits = text->bits << (8 * (3 - text->waiting));
    char four[4] = {digits[bits >> 18 & 63], digits[bits >> 12 & 63],
                    text->waiting > 1 ? digits[bits >> 6 & 63] : '=',
                    text->waiting > 2 ? digits[bits & 63] : '='};
    attn_buffer_add(text->out, four, sizeof four);
    *text = (struct base64){.out = text->out};
}

static void base64_add(struct base64 *text, unsigned byte)
{
    text->bits = text->bits << 8 | byte;
    if (++text->waiting == 3)
        base64_flush(text);
}

static void base64_add_pair(struct base64 *text, unsigned value)
{
    base64_add(text, value & 0xff);
    base64_add(text, value >> 8);
}

static unsigned weight_code(float weight, float largest)
{
    if (!isfinite(weight))
        return NOT_A_NUMBER_CODE;
    double part = fmin(fmax((double)weight / (double)largest, 0.0), 1.0);
    return (unsigned)lround(part * LARGEST_CODE);
}

/* Whether column a's weight goes before column b's: not a number first, then the larger, then the
 * one further left. */
static bool is_stronger(const float *weights, size_t a, size_t b)
{
    bool a_finite = isfinite(weights[a]), b_finite = isfinite(weights[b]);
    if (a_finite != b_finite)
        return b_finite;
    if (a_finite && (weights[a] > weights[b] || weights[a] < weights[b]))
        return weights[a] > weights[b];
    return a < b;
}

/* heap[0] is the weakest of what is kept. */
static void sink_root(const float *weights, size_t *heap, size_t size)
{
    for (size_t at = 0;;) {
        size_t weakest = at, left = 2 * at + 1;
        for (size_t child = left; child < size && child <= left + 1; child++)
            if (is_stronger(weights, heap[weakest], heap[child]))
                weakest = child;
        if (weakest == at)
            return;
        size_t column = heap[at];
        heap[at] = heap[weakest];
        heap[weakest] = column;
        at = weakest;
    }
}

static void raise_last(const float *weights, size_t *heap, size_t size)
{
    for (size_t at = size - 1; at > 0;) {
        size_t parent = (at - 1) / 2;
        if (!is_stronger(weights, heap[parent], heap[at]))
            return;
        size_t column = heap[at];
        heap[at] = heap[parent];
        heap[parent] = column;
        at = parent;
    }
}

/* The columns of the `keep` strongest weights, in any order. */
static void find_strongest(const float *weights, size_t columns, size_t keep, size_t *heap)
{
    for (size_t column = 0, size = 0; column < columns; column++) {
        if (size < keep) {
            heap[size++] = column;
            raise_last(weights, heap, size);
        } else if (is_stronger(weights, column, heap[0])) {
            heap[0] = column;
            sink_root(weights, heap, size);
        }
    }
}

/* Negative and non-finite weights count nothing. */
static double countable(float weight)
{
    return isfinite(weight) && weight > 0 ? (double)weight : 0.0;
}

static void add_row(const struct page_weights *plan, const float *weights, size_t columns,
                    float largest, size_t *heap, struct base64 *text, double *kept)
{
    if (!plan->strongest) {
        for (size_t column = 0; column < columns; column++)
            base64_add_pair(text, weight_code(weights[column], largest));
        return;
    }
    find_strongest(weights, columns, plan->strongest, heap);
    for (size_t i = 0; i < plan->strongest; i++) {
        base64_add_pair(text, (unsigned)heap[i]);
        base64_add_pair(text, weight_code(weights[heap[i]], largest));
        *kept += countable(weights[heap[i]]);
    }
}

void page_weights_add(const struct attention_map *map, const struct page_weights *plan,
                      float largest, struct attn_buffer *out, double *share)
{
    struct base64 text = {.out = out};
    double total = 0, kept = 0;
    size_t *heap = calloc(plan->strongest + 1, sizeof *heap);
    if (!heap) {
        out->failed = true;
        return;
    }
    for (size_t p = 0; p < map->panel_count; p++) {
        for (size_t row = 0; row < map->rows; row++) {
            const float *weights = map->panels[p].weights + row * map->columns;
            add_row(plan, weights, map->columns, largest, heap, &text, &kept);
            for (size_t column = 0; plan->strongest && column < map->columns; column++)
                total += countable(weights[column]);
        }
    }
    base64_flush(&text);
    free(heap);
    *share = total > 0 ? kept / total : 1;
}
