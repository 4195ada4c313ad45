/* attn_merge: one result from two partial ones, row by row in double, whatever the types. */
#include "attn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attention/context.h"
#include "attention/overlap.h"
#include "attention/problem.h"
#include "attention/rows.h"
#include "attention/tensor_check.h"
#include "attention/tensor_extent.h"

enum {
    PIECE = 64,             /* elements that are converted at once */
    ITEM_ELEMENTS = 1 << 15 /* of an item at least: less is not worth a thread */
};

struct part {
    attn_tensor o, stats;
};

struct merge_run {
    const struct attn_kernels *kernels;
    struct part parts[2];
    struct part result; /* stats.data is NULL where they are not wanted */
    int64_t heads, length, rows, rows_an_item;
};

/* The state of one row of a part. */
struct row_state {
    double m, l;
};

static double element(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i, int64_t c)
{
    const void *place = attn_address(tensor, attn_type_size(tensor->type), b, h, i, c);
    return tensor->type == ATTN_F64 ? *(const double *)place : (double)*(const float *)place;
}

static void set_element(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i, int64_t c,
                        double value)
{
    void *place = attn_address(tensor, attn_type_size(tensor->type), b, h, i, c);
    if (tensor->type == ATTN_F64)
        *(double *)place = value;
    else
        *(float *)place = (float)value;
}

static struct row_state state_of(const attn_tensor *stats, int64_t b, int64_t h, int64_t i)
{
    struct row_state state = {element(stats, b, h, i, 0), 1};
    if (stats->shape[3] == 2)
        state.l = element(stats, b, h, i, 1);
    if (state.m == -INFINITY)
        state.l = 0;
    return state;
}

/* Elements c..c+count−1 of a row. */
static void read_piece(const struct attn_kernels *kernels, const attn_tensor *o, int64_t b,
                       int64_t h, int64_t i, int64_t c, int64_t count, double *piece)
{
    int64_t size = attn_type_size(o->type), step = o->stride[3];
    const char *from = attn_address(o, size, b, h, i, c);
    for (int64_t e = 0; e < count; e++) {
        float widened;
        if (o->type == ATTN_F64) {
            piece[e] = *(const double *)(const void *)(from + e * step * size);
            continue;
        }
        if (o->type == ATTN_F32)
            memcpy(&widened, from + e * step * size, sizeof widened);
        else
            kernels->widen(attn_storage_of(o->type), from + e * step * size, 1.0f, 1, &widened);
        piece[e] = (double)widened;
    }
}

static void write_piece(const struct attn_kernels *kernels, const attn_tensor *o, int64_t b,
                        int64_t h, int64_t i, int64_t c, int64_t count, const double *piece)
{
    int64_t size = attn_type_size(o->type), step = o->stride[3];
    char *to = attn_address(o, size, b, h, i, c);
    for (int64_t e = 0; e < count; e++) {
        float rounded = (float)piece[e];
        if (o->type == ATTN_F64)
            *(double *)(void *)(to + e * step * size) = piece[e];
        else if (o->type == ATTN_F32)
            memcpy(to + e * step * size, &rounded, sizeof rounded);
        else
            kernels->narrow(attn_storage_of(o->type), &rounded, 1, to + e * step * size);
    }
}

static void merge_row(const struct merge_run *run, int64_t b, int64_t h, int64_t i)
{
    struct row_state states[2], all = {-INFINITY, 0};
    for (int n = 0; n < 2; n++) {
        states[n] = state_of(&run->parts[n].stats, b, h, i);
        /* A NaN stays. */
        if (!(states[n].m <= all.m) && !isnan(all.m))
            all.m = states[n].m;
    }
    double weights[2] = {0, 0};
    for (int n = 0; n < 2; n++) {
        if (states[n].m != -INFINITY)
            weights[n] = states[n].l * exp(states[n].m - all.m);
        all.l += weights[n];
    }

    const attn_tensor *o = &run->result.o, *stats = &run->result.stats;
    for (int64_t c = 0; c < o->shape[3]; c += PIECE) {
        int64_t count = o->shape[3] - c < PIECE ? o->shape[3] - c : PIECE;
        double sum[PIECE] = {0}, piece[PIECE];
        for (int n = 0; n < 2; n++) {
            if (states[n].m == -INFINITY)
                continue;
            read_piece(run->kernels, &run->parts[n].o, b, h, i, c, count, piece);
            for (int64_t e = 0; e < count; e++)
                sum[e] += piece[e] * (weights[n] / all.l);
        }
        write_piece(run->kernels, o, b, h, i, c, count, sum);
    }
    if (!stats->data)
        return;
    if (stats->shape[3] == 2) {
        set_element(stats, b, h, i, 0, all.m);
        set_element(stats, b, h, i, 1, all.l);
    } else {
        set_element(stats, b, h, i, 0, all.m == -INFINITY ? -INFINITY : all.m + log(all.l));
    }
}

static void merge_item(void *state, int64_t item, int thread)
{
    (void)thread;
    const struct merge_run *run = state;
    int64_t end = run->rows - item * run->rows_an_item < run->rows_an_item
                      ? run->rows
                      : (item + 1) * run->rows_an_item;
    for (int64_t row = item * run->rows_an_item; row < end; row++)
        merge_row(run, row / run->length / run->heads, row / run->length % run->heads,
                  row % run->length);
}

/* The statistics of o in one of the two forms. */
static attn_status check_stats(const attn_tensor *stats, const char *name, const attn_tensor *o,
                               struct attn_error *error)
{
    unsigned type = o->type == ATTN_F64 ? ATTN_TYPES_F64 : ATTN_TYPES_F32;
    attn_status status = attn_check_tensor(stats, name, type, error);
    if (status)
        return status;
    RETURN_IF(stats->shape[3] != 1 && stats->shape[3] != 2, error, ATTN_ERROR_SHAPE,
              "%s has dim %" PRId64 ", expected 2 (m and l) or 1 (a log-sum-exp)", name,
              stats->shape[3]);
    const int64_t expected[4] = {o->shape[0], o->shape[1], o->shape[2], stats->shape[3]};
    return attn_check_shape(stats, name, expected, error);
}

static attn_status check_part(const attn_tensor *o, const char *name, const attn_tensor *stats,
                              const char *stats_name, const attn_tensor *like,
                              struct attn_error *error)
{
    unsigned types = like->type == ATTN_F64 ? ATTN_TYPES_F64 : ATTN_TYPES_FLOAT;
    attn_status status = attn_check_tensor(o, name, types, error);
    if (!status)
        status = attn_check_shape(o, name, like->shape, error);
    if (!status && stats)
        status = check_stats(stats, stats_name, like, error);
    return status;
}

static attn_status check_output(const struct merge_run *run, const attn_tensor *output,
                                const char *name, struct attn_error *error)
{
    if (attn_is_empty(output))
        return ATTN_SUCCESS;
    RETURN_IF(attn_addresses_twice(output), error, ATTN_ERROR_OVERLAP,
              "%s has strides that address one element twice, expected one place for each element",
              name);
    static const char *const names[2][2] = {{"o1", "stats1"}, {"o2", "stats2"}};
    for (int n = 0; n < 2; n++) {
        const attn_tensor *inputs[2] = {&run->parts[n].o, &run->parts[n].stats};
        for (int t = 0; t < 2; t++)
            RETURN_IF(attn_overlap(output, inputs[t]), error, ATTN_ERROR_OVERLAP,
                      "%s and %s share memory, expected an output apart from all inputs", name,
                      names[n][t]);
    }
    return ATTN_SUCCESS;
}

static attn_status merge(attn_context *context, const attn_tensor *o1, const attn_tensor *stats1,
                         const attn_tensor *o2, const attn_tensor *stats2, const attn_tensor *o,
                         const attn_tensor *stats)
{
    struct attn_error *error = &context->error;
    attn_status status = attn_check_tensor(o, "o", ATTN_TYPES_FLOAT | ATTN_TYPES_F64, error);
    RETURN_IF(!status && (!stats1 || !stats2), error, ATTN_ERROR_ARGUMENT,
              "%s is NULL, expected the statistics of a part", stats1 ? "stats2" : "stats1");
    if (!status)
        status = check_part(o1, "o1", stats1, "stats1", o, error);
    if (!status)
        status = check_part(o2, "o2", stats2, "stats2", o, error);
    if (!status && stats)
        status = check_stats(stats, "stats", o, error);
    /* Without an element to write, rows may be more than fit in 64 bits. */
    if (status || (attn_is_empty(o) && (!stats || attn_is_empty(stats))))
        return status;

    struct merge_run run = {
        .kernels = context->kernels,
        .parts = {{attn_without_offsets(o1), attn_without_offsets(stats1)},
                  {attn_without_offsets(o2), attn_without_offsets(stats2)}},
        .result = {.o = attn_without_offsets(o)},
        .heads = o->shape[1],
        .length = o->shape[2],
        .rows = o->shape[0] * o->shape[1] * o->shape[2],
    };
    if (stats)
        run.result.stats = attn_without_offsets(stats);
    status = check_output(&run, o, "o", error);
    if (!status && stats)
        status = check_output(&run, stats, "stats", error);
    RETURN_IF(!status && stats && attn_overlap(stats, o), error, ATTN_ERROR_OVERLAP,
              "stats and o share memory, expected outputs apart from each other");
    if (status)
        return status;

    int64_t width = o->shape[3] > 0 ? o->shape[3] : 1;
    run.rows_an_item = width < ITEM_ELEMENTS ? ITEM_ELEMENTS / width : 1;
    int64_t items = (run.rows - 1) / run.rows_an_item + 1;
    attn_context_run(context, items, merge_item, &run);
    return ATTN_SUCCESS;
}

attn_status attn_merge(attn_context *context, const attn_tensor *o1, const attn_tensor *stats1,
                       const attn_tensor *o2, const attn_tensor *stats2, const attn_tensor *o,
                       const attn_tensor *stats)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    uint64_t modes = attn_call_begin(context);
    attn_status status = merge(context, o1, stats1, o2, stats2, o, stats);
    attn_call_end(modes);
    return status;
}
