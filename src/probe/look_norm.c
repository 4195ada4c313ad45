/* How much a key adds to a row: ‖Σ_h w_h·f_h‖, f_h = v_h·Wo_h being what head h would add of the
 * key with weight 1. The square is Σ_h Σ_g w_h·w_g·(f_h·f_g): the products f_h·f_g of each token
 * are formed once a layer, in double, and then no vector is needed again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/look_pass.h"

enum {
    TOKEN_BLOCK = 32, /* whose vectors are held at once */
    KEY_BLOCK = 256   /* whose products stay in cache while a tile's rows go by */
};

static bool allocate(struct look_pass *pass, const struct attention_record *record)
{
    struct look_norm *norm = &pass->norm;
    const size_t heads = (size_t)pass->heads, width = (size_t)record->output.width;
    const size_t d = (size_t)record->v.shape[3];
    /* The mean needs all pairs; once one is asked for, it is of every layer or none. */
    norm->pairs = pass->mean ? pass->heads * (pass->heads + 1) / 2 : pass->heads;
    norm->products = calloc((size_t)norm->pairs, pass->tokens * sizeof *norm->products);
    norm->projection = calloc(heads * d, width * sizeof *norm->projection);
    norm->identity = calloc(TOKEN_BLOCK, heads * d * sizeof *norm->identity);
    norm->values = calloc(TOKEN_BLOCK, d * sizeof *norm->values);
    norm->added = calloc(heads * TOKEN_BLOCK, width * sizeof *norm->added);
    norm->norms = calloc((size_t)pass->tile_rows, pass->tokens * sizeof *norm->norms);
    return norm->products && norm->projection && norm->identity && norm->values && norm->added &&
           norm->norms;
}

void look_norm_release(struct look_norm *norm)
{
    free(norm->products);
    free(norm->projection);
    free(norm->identity);
    free(norm->values);
    free(norm->added);
    free(norm->norms);
    *norm = (struct look_norm){0};
}

/* Wo[heads·d][width], whatever it is stored as: the projection of the unit vectors. No more of them
 * at once than the text has tokens, for which the model has made room. */
static void read_projection(struct look_pass *pass, const struct compute *compute,
                            const struct attention_record *record)
{
    struct look_norm *norm = &pass->norm;
    const int64_t inputs = pass->heads * record->v.shape[3], width = record->output.width;
    const int64_t most = (int64_t)pass->tokens < TOKEN_BLOCK ? (int64_t)pass->tokens : TOKEN_BLOCK;
    for (int64_t first = 0; first < inputs; first += most) {
        const int64_t count = inputs - first < most ? inputs - first : most;
        memset(norm->identity, 0, (size_t)(count * inputs) * sizeof *norm->identity);
        for (int64_t n = 0; n < count; n++)
            norm->identity[n * inputs + first + n] = 1.0f;
        record->output.project(record->output.user, compute, count, norm->identity,
                               norm->projection + first * width);
    }
}

static double dot(const float *a, const float *b, int64_t count)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int n = 0; n < 4; n++)
            sums[n] += (double)a[i + n] * (double)b[i + n];
    for (; i < count; i++)
        sums[0] += (double)a[i] * (double)b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Products of tokens first..first+count−1, whose f[heads][count][width] are in `added`. Those of
 * two different heads stand twice in the sum. */
static void multiply_block(struct look_norm *norm, int64_t heads, int64_t width, int64_t tokens,
                           int64_t first, int64_t count)
{
    for (int64_t t = 0; t < count; t++) {
        int64_t pair = 0;
        for (int64_t head = 0; head < heads; head++) {
            const float *one = norm->added + (head * count + t) * width;
            const int64_t end = norm->pairs == heads ? head + 1 : heads;
            for (int64_t other = head; other < end; other++, pair++)
                norm->products[pair * tokens + first + t] =
                    (other == head ? 1.0 : 2.0) *
                    dot(one, norm->added + (other * count + t) * width, width);
        }
    }
}

static void form_products(struct look_pass *pass, const struct attention_record *record)
{
    struct look_norm *norm = &pass->norm;
    const int64_t width = record->output.width, d = record->v.shape[3];
    const int64_t tokens = (int64_t)pass->tokens, shared = pass->heads / record->v.shape[1];
    for (int64_t first = 0; first < tokens; first += TOKEN_BLOCK) {
        const int64_t count = tokens - first < TOKEN_BLOCK ? tokens - first : TOKEN_BLOCK;
        for (int64_t head = 0; head < pass->heads; head++) {
            const struct linear part = {.weight = norm->projection + head * d * width,
                                        .in = d,
                                        .out = width,
                                        .layout = LINEAR_IN_OUT};
            look_copy_rows(&record->v, head / shared, first, count, norm->values);
            linear_product(&part, count, norm->values, d, norm->added + head * count * width,
                           width);
        }
        multiply_block(norm, pass->heads, width, tokens, first, count);
    }
}

/* norms[j] of one row, keys first..first+count−1: weights[heads][…], `stride` numbers a head. */
static void add_up(const struct look_norm *norm, int64_t heads, int64_t tokens,
                   const float *weights, int64_t stride, int64_t first, int64_t count, float *norms)
{
    double squares[KEY_BLOCK] = {0.0}, others[KEY_BLOCK];
    int64_t pair = 0;
    for (int64_t head = 0; head < heads; head++) {
        memset(others, 0, (size_t)count * sizeof *others);
        for (int64_t other = head; other < heads; other++, pair++) {
            const double *products = norm->products + pair * tokens + first;
            const float *weight = weights + other * stride + first;
            for (int64_t j = 0; j < count; j++)
                others[j] += products[j] * (double)weight[j];
        }
        const float *weight = weights + head * stride + first;
        for (int64_t j = 0; j < count; j++)
            squares[j] += (double)weight[j] * others[j];
    }
    /* What cancels can end a little below 0. */
    for (int64_t j = 0; j < count; j++)
        norms[first + j] = (float)sqrt(squares[j] > 0.0 ? squares[j] : 0.0);
}

static bool observe_layer(struct look_pass *pass, const struct compute *compute,
                          const struct attention_record *record, struct attn_error *error)
{
    const int64_t tokens = (int64_t)pass->tokens, heads = pass->heads;
    look_row_clear(&pass->rows[0], pass->look->units);
    for (int64_t row = 0; row < tokens; row += pass->tile_rows) {
        const int64_t rows = tokens - row < pass->tile_rows ? tokens - row : pass->tile_rows;
        const int64_t keys = look_tile(pass, compute, record, 0, heads, row, rows, error);
        if (keys < 0)
            return false;
        for (int64_t first = 0; first < keys; first += KEY_BLOCK) {
            const int64_t count = keys - first < KEY_BLOCK ? keys - first : KEY_BLOCK;
            for (int64_t i = 0; i < rows; i++)
                add_up(&pass->norm, heads, tokens, pass->tile + i * keys, rows * keys, first, count,
                       pass->norm.norms + i * keys);
        }
        look_keep_layer_rows(pass, row, rows, keys, pass->norm.norms);
    }
    return true;
}

/* Of one head alone: w·‖f‖. */
static void scale_tile(struct look_pass *pass, const struct attention_record *record,
                       const attn_tensor *d_o, int64_t head, int64_t row, int64_t rows,
                       int64_t keys, float *tile)
{
    (void)record, (void)d_o, (void)row;
    const int64_t tokens = (int64_t)pass->tokens;
    int64_t pair = head;
    if (pass->norm.pairs != pass->heads)
        pair = head * pass->heads - head * (head - 1) / 2;
    const double *squares = pass->norm.products + pair * tokens;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++)
            tile[i * keys + j] = (float)((double)tile[i * keys + j] * sqrt(squares[j]));
}

bool look_norm_observe(struct look_pass *pass, const struct compute *compute,
                       const struct attention_record *record, struct attn_error *error)
{
    if (!pass->norm.products && !allocate(pass, record))
        return attn_error_memory(error);
    read_projection(pass, compute, record);
    form_products(pass, record);
    return (!look_wants_mean(pass) || observe_layer(pass, compute, record, error)) &&
           look_collect_alone(pass, compute, record, scale_tile, NULL, error);
}
