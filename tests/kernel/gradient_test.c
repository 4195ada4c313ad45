/* The kernels of the backward pass but its products of bf16 pairs: dots, softmax, softmax_dropout
 * and add_rows of gradient_kernels.h. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/gradient_kernels.h"
#include "kernel/kernel.h"
#include "panel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
static const int64_t key_counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16, 17, 23, 24, 95, 96};

static void dots_of_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    const int64_t dims[] = {0, 1, 2, 3, 4, 5, 8, 17, 64, 80, 127};
    struct random_source source = {1};
    for (size_t i = 0; i < 2 * COUNT(dims); i++) {
        int64_t d = dims[i / 2];
        float *a = random_panel(&source, d * lanes, sides[i % 2]);
        float *b = random_panel(&source, d * lanes, sides[i % 2]);
        float *delta = guarded_panel((size_t)lanes, sides[i % 2]);
        double expected[ATTN_MAX_LANES] = {0}, error[ATTN_MAX_LANES] = {0};
        for (int64_t k = 0; k < d * lanes; k++) {
            double product = (double)a[k] * b[k];
            expected[k % lanes] += product;
            error[k % lanes] += (double)d * 0x1p-24 * fabs(product);
        }
        kernels->gradients->dots(a, b, lanes, d, delta);
        test_context("%d lanes, d %d", lanes, (int)d);
        CHECK_NEAR(delta, expected, 1, error, (size_t)lanes);
        guarded_release_all();
    }
}

/* What softmax takes, and in double what it is to give. */
struct rows {
    int lanes;
    int64_t keys;
    float *s, *t, *factors;       /* [keys][lanes] */
    float *m, *inverse_l, *delta; /* [lanes] */
    double *p, *ds;               /* [keys][lanes]: results, with factors in p */
    double *p_error, *ds_error;
};

/* Scores in base − 5 … base + 5; one in six is excluded, with a t that must not be looked at. */
static struct rows random_rows(struct random_source *source, int lanes, int64_t keys, float base,
                               enum guard_side side)
{
    const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f};
    struct rows rows = {.lanes = lanes, .keys = keys};
    int64_t count = keys * lanes;
    rows.s = random_panel(source, count, side);
    rows.t = random_panel(source, count, side);
    rows.factors = random_panel(source, count, side);
    rows.m = filled_panel((size_t)lanes, -INFINITY);
    rows.inverse_l = random_panel(source, lanes, side);
    rows.delta = random_panel(source, lanes, side);
    for (int64_t i = 0; i < count; i++) {
        rows.s[i] = base + 2.5f * rows.s[i];
        rows.factors[i] = random_integer(source, 0, 3) == 0 ? 0.0f : 1.25f;
        if (random_integer(source, 0, 5) == 0) {
            rows.s[i] = -INFINITY;
            rows.t[i] = strange[random_integer(source, 0, COUNT(strange) - 1)];
        }
        rows.m[i % lanes] = fmaxf(rows.m[i % lanes], rows.s[i]);
    }
    for (int n = 0; n < lanes; n++)
        rows.inverse_l[n] = rows.m[n] == -INFINITY ? 0.0f : 0.1f + fabsf(rows.inverse_l[n]);
    return rows;
}

/* exp is good for two units in the last place, its argument and each product for half a unit. */
static void expect(struct rows *rows, bool drops)
{
    size_t count = (size_t)(rows->keys * rows->lanes);
    rows->p = guarded_doubles(count);
    rows->ds = guarded_doubles(count);
    rows->p_error = guarded_doubles(count);
    rows->ds_error = guarded_doubles(count);
    for (size_t i = 0; i < count; i++) {
        size_t n = i % (size_t)rows->lanes;
        rows->p[i] = rows->ds[i] = rows->p_error[i] = rows->ds_error[i] = 0;
        if (rows->s[i] == -INFINITY || rows->inverse_l[n] == 0)
            continue;
        double argument = (double)rows->s[i] - rows->m[n];
        double factor = drops ? (double)rows->factors[i] : 1, delta = rows->delta[n];
        double p = exp(argument) * rows->inverse_l[n];
        double error = p * 0x1p-24 * (6 - argument);
        double dp = rows->t[i] * factor;
        rows->p[i] = p * factor;
        rows->p_error[i] = factor * error;
        rows->ds[i] = p * (dp - delta);
        rows->ds_error[i] = error * fabs(dp - delta) + p * 0x1p-23 * (fabs(dp) + fabs(delta));
    }
}

static void apply(const struct attn_kernels *kernels, const struct rows *rows, bool drops)
{
    if (drops)
        kernels->gradients->softmax_dropout(rows->s, rows->t, rows->factors, rows->lanes,
                                            rows->keys, rows->m, rows->inverse_l, rows->delta);
    else
        kernels->gradients->softmax(rows->s, rows->t, rows->lanes, rows->keys, rows->m,
                                    rows->inverse_l, rows->delta);
}

/* The half of a panel of two vectors as one of its own. */
static struct rows half_of(const struct rows *rows, int half)
{
    struct rows one = {.lanes = rows->lanes / 2, .keys = rows->keys};
    one.s = panel_half(rows->s, rows->keys, rows->lanes, half);
    one.t = panel_half(rows->t, rows->keys, rows->lanes, half);
    one.factors = panel_half(rows->factors, rows->keys, rows->lanes, half);
    one.m = panel_half(rows->m, 1, rows->lanes, half);
    one.inverse_l = panel_half(rows->inverse_l, 1, rows->lanes, half);
    one.delta = panel_half(rows->delta, 1, rows->lanes, half);
    return one;
}

static void check_softmax(const struct attn_kernels *kernels, int lanes, int64_t keys, float base,
                          bool drops, enum guard_side side)
{
    struct random_source source = {(uint64_t)(keys + 1)};
    struct rows rows = random_rows(&source, lanes, keys, base, side);
    expect(&rows, drops);
    struct rows halves[2];
    bool has_halves = lanes == 2 * kernels->vector_lanes;
    for (int half = 0; has_halves && half < 2; half++) {
        halves[half] = half_of(&rows, half);
        apply(kernels, &halves[half], drops);
    }
    apply(kernels, &rows, drops);
    test_context("%d lanes, %d keys, scores near %g, dropout %d", lanes, (int)keys, (double)base,
                 drops);
    size_t count = (size_t)(keys * lanes);
    CHECK_NEAR(rows.s, rows.p, 1, rows.p_error, count);
    CHECK_NEAR(rows.t, rows.ds, 1, rows.ds_error, count);
    for (int half = 0; has_halves && half < 2; half++) {
        CHECK_SAME_HALF(halves[half].s, rows.s, keys, lanes, half);
        CHECK_SAME_HALF(halves[half].t, rows.t, keys, lanes, half);
    }
    guarded_release_all();
}

static void softmax_of_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    const float bases[] = {0, 95, -95};
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(bases); b++)
            for (size_t side = 0; side < COUNT(sides); side++) {
                check_softmax(kernels, lanes, key_counts[a], bases[b], false, sides[side]);
                check_softmax(kernels, lanes, key_counts[a], bases[b], true, sides[side]);
            }
}

static void factors_of_one_change_no_bit(const struct attn_kernels *kernels, int lanes)
{
    enum { KEYS = 13 };
    struct random_source source = {2};
    struct rows rows = random_rows(&source, lanes, KEYS, 0, GUARD_BEHIND), dropped = rows;
    dropped.s = panel_copy(rows.s, KEYS, lanes);
    dropped.t = panel_copy(rows.t, KEYS, lanes);
    dropped.factors = filled_panel((size_t)(KEYS * lanes), 1);
    apply(kernels, &rows, false);
    apply(kernels, &dropped, true);
    CHECK_SAME_BITS(dropped.s, rows.s, (size_t)(KEYS * lanes));
    CHECK_SAME_BITS(dropped.t, rows.t, (size_t)(KEYS * lanes));
}

/* A lane without a key, one whose weights are not numbers, and one that is no query's: what is
 * excluded is 0 there too, and the lanes beside them do not notice. */
static void strange_lanes(const struct attn_kernels *kernels, int lanes)
{
    enum { KEYS = 9 };
    for (int drops = 0; drops < 2; drops++)
        for (int lane = 0; lane < lanes; lane++) {
            struct random_source source = {3};
            struct rows clean = random_rows(&source, lanes, KEYS, 0, GUARD_BEHIND), rows = clean;
            rows.s = panel_copy(clean.s, KEYS, lanes);
            rows.t = panel_copy(clean.t, KEYS, lanes);
            rows.m = panel_copy(clean.m, 1, lanes);
            rows.inverse_l = panel_copy(clean.inverse_l, 1, lanes);
            int kind = lane % 3;
            for (int64_t j = 0; j < KEYS; j++) {
                float *s = &rows.s[j * lanes + lane], *t = &rows.t[j * lanes + lane];
                *t = j % 2 ? NAN : INFINITY;
                *s = kind == 0 || j % 3 == 0 ? -INFINITY : kind == 1 ? NAN : (float)j;
            }
            rows.m[lane] = kind == 0 ? -INFINITY : kind == 1 ? INFINITY : 8;
            rows.inverse_l[lane] = kind == 1 ? NAN : 0;
            apply(kernels, &clean, drops);
            apply(kernels, &rows, drops);
            for (int64_t j = 0; j < KEYS; j++)
                for (int n = 0; n < lanes; n++) {
                    test_context("lane %d of %d, key %d, strange lane %d, dropout %d", n, lanes,
                                 (int)j, lane, drops);
                    int64_t i = j * lanes + n;
                    float number = n == lane && kind == 1 && j % 3 != 0 ? NAN : 0.0f;
                    CHECK_ALL(&rows.s[i], n == lane ? number : clean.s[i], 1);
                    CHECK_ALL(&rows.t[i], n == lane ? number : clean.t[i], 1);
                }
            guarded_release_all();
        }
}

/* c += aᵀ·b, sizes and strides; `across` is width rounded up to whole vectors. */
struct product {
    int lanes;
    int64_t keys, rows, width, across, b_stride, c_stride;
    float *a, *b, *c;
};

/* Where nothing is to be read stands NaN, or where whole vectors may be, a number too large to be
 * overlooked. c_stride leaves gaps that must stay as they are. */
static struct product random_product(const struct attn_kernels *kernels, int lanes, int64_t keys,
                                     int64_t rows, int64_t width, enum guard_side side)
{
    struct random_source source = {(uint64_t)(keys * 10000 + rows * 100 + width)};
    int64_t vector = kernels->vector_lanes;
    int64_t across = (width + vector - 1) / vector * vector;
    struct product product = {.lanes = lanes,
                              .keys = keys,
                              .rows = rows,
                              .width = width,
                              .across = across,
                              .b_stride = across + rows % 3,
                              .c_stride = (across / 16 + 2) * 16};
    product.a = guarded_panel((size_t)(keys * lanes), side);
    for (int64_t j = 0; j < keys; j++)
        random_floats(&source, -2, 2, product.a + j * lanes, (size_t)rows);
    product.b =
        guarded_floats((size_t)(rows > 0 ? (rows - 1) * product.b_stride + across : 0), side);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < across; i++)
            product.b[n * product.b_stride + i] = i < width ? random_float(&source, -2, 2) : 1e30f;
    product.c =
        guarded_panel((size_t)(keys > 0 ? (keys - 1) * product.c_stride + across : 0), side);
    for (int64_t j = 0; j < keys; j++)
        random_floats(&source, -2, 2, product.c + j * product.c_stride, (size_t)across);
    return product;
}

/* A key and a few columns at a time. */
static void add_piece_by_piece(const struct attn_kernels *kernels, const struct product *x,
                               float *c)
{
    enum { PIECE = 16 }; /* as many as keep the alignment of c */
    for (int64_t j = 0; j < x->keys; j++)
        for (int64_t i = 0; i < x->width; i += PIECE)
            kernels->gradients->add_rows(x->a + j * x->lanes, x->lanes, 1, x->b + i, x->b_stride,
                                         x->rows, c + j * x->c_stride + i, x->c_stride,
                                         x->width - i < PIECE ? x->width - i : PIECE);
}

static void check_add_rows(const struct attn_kernels *kernels, const struct product *x)
{
    size_t count = (size_t)(x->keys * x->c_stride);
    double *expected = guarded_doubles(count), *error = guarded_doubles(count);
    float *alone = guarded_panel(count, GUARD_BEHIND);
    for (int64_t j = 0; j < x->keys; j++) {
        memcpy(alone + j * x->c_stride, x->c + j * x->c_stride, (size_t)x->across * sizeof *alone);
        for (int64_t i = 0; i < x->width; i++) {
            double sum = x->c[j * x->c_stride + i], size = fabs(sum);
            for (int64_t n = 0; n < x->rows; n++) {
                double term = (double)x->a[j * x->lanes + n] * x->b[n * x->b_stride + i];
                sum += term;
                size += fabs(term);
            }
            expected[j * x->c_stride + i] = sum;
            error[j * x->c_stride + i] = ((double)x->rows + 1) * 0x1p-24 * size;
        }
    }
    add_piece_by_piece(kernels, x, alone);
    kernels->gradients->add_rows(x->a, x->lanes, x->keys, x->b, x->b_stride, x->rows, x->c,
                                 x->c_stride, x->width);
    test_context("%d lanes, %d keys, %d rows, width %d", x->lanes, (int)x->keys, (int)x->rows,
                 (int)x->width);
    for (int64_t j = 0; j < x->keys; j++) {
        int64_t row = j * x->c_stride;
        CHECK_NEAR(x->c + row, expected + row, 1, error + row, (size_t)x->width);
        CHECK_SAME_BITS(alone + row, x->c + row, (size_t)x->width);
        if (j + 1 < x->keys)
            CHECK_UNWRITTEN(x->c + row + x->across, (size_t)(x->c_stride - x->across));
    }
}

static void adds_rows_of_all_sizes(const struct attn_kernels *kernels, int lanes)
{
    const int64_t v = kernels->vector_lanes;
    const int64_t row_counts[] = {0, 1, 2, 3, 4, 5, 7, v - 1, v, lanes - 1, lanes};
    const int64_t widths[] = {0,         1,     v - 1, v,         v + 1, 2 * v - 1,
                              2 * v + 1, 3 * v, 4 * v, 5 * v + 3, 64,    80};
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(row_counts); b++)
            for (size_t c = 0; c < COUNT(widths); c++) {
                if (row_counts[b] > lanes || !test_takes_one_in(5))
                    continue;
                struct product x = random_product(kernels, lanes, key_counts[a], row_counts[b],
                                                  widths[c], sides[(a + b + c) % 2]);
                check_add_rows(kernels, &x);
                guarded_release_all();
            }
}

int main(void)
{
    panel_each("dots of all sizes", dots_of_all_sizes);
    panel_each("softmax of all sizes, with excluded keys", softmax_of_all_sizes);
    panel_each("factors of one change no bit", factors_of_one_change_no_bit);
    panel_each("lanes without a number, and their neighbours", strange_lanes);
    panel_each("adds rows of all sizes", adds_rows_of_all_sizes);
    return test_finish();
}
