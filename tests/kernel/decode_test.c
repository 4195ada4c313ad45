/* The kernels of decode, each alone: every storage, number of queries and odd size, with guard
 * pages at the rows. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/element.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"
#include "kernel/decode_kernels.h"
#include "kernel/kernel.h"

static const attn_type types[ATTN_STORAGE_COUNT] = {
    [ATTN_STORAGE_F32] = ATTN_F32,
    [ATTN_STORAGE_F16] = ATTN_F16,
    [ATTN_STORAGE_BF16] = ATTN_BF16,
    [ATTN_STORAGE_I8] = ATTN_I8,
};

static const int64_t dims[] = {0, 1, 7, 8, 15, 16, 17, 32, 40, 63, 64, 100, 128, 200};
static const int64_t lengths[] = {1, 2, 3, 5, 8, 17, 48, 193, 386, 767, ATTN_DECODE_BLOCK};

/* Rows with a gap of one element between them, flush against a guard page, and their values. */
struct rows {
    struct attn_stored_rows stored;
    double *values; /* [keys][d], times the scale */
};

static struct rows make_rows(struct random_source *source, enum attn_storage storage, int64_t keys,
                             int64_t d, enum guard_side side)
{
    const int64_t size = (int64_t)element_size(types[storage]);
    const size_t elements = (size_t)(keys * (d + 1));
    char *data = guarded_bytes((elements - 1) * (size_t)size + 1, (size_t)size, side);
    struct rows rows = {.stored = {.data = data, .stride = (d + 1) * size},
                        .values = guarded_doubles((size_t)(keys * d))};
    float *scales = NULL;
    if (storage == ATTN_STORAGE_I8) {
        scales = guarded_floats((size_t)(2 * keys - 1), side);
        rows.stored.scales = scales;
        rows.stored.scale_stride = 2;
    }
    for (int64_t j = 0; j < keys; j++) {
        double scale = 1, range = storage == ATTN_STORAGE_I8 ? 127 : 1;
        if (scales) {
            scales[2 * j] = random_float(source, 0.001f, 0.01f);
            scale = (double)scales[2 * j];
        }
        for (int64_t c = 0; c < d; c++) {
            double value = (double)random_float(source, -1, 1) * range;
            element_set(types[storage], data, j * (d + 1) + c, value);
            rows.values[j * d + c] = element_round(types[storage], value) * scale;
        }
    }
    return rows;
}

/* Queries in the kernels' order, and as they are. */
struct queries {
    float *packed, *plain;
};

static struct queries make_queries(const struct attn_decode_storage *kernels,
                                   struct random_source *source, int64_t d)
{
    const int64_t width = attn_decode_width(d);
    struct queries queries = {guarded_panel((size_t)(ATTN_DECODE_QUERIES * width), GUARD_BEHIND),
                              guarded_floats((size_t)(ATTN_DECODE_QUERIES * d), GUARD_BEHIND)};
    random_floats(source, -1, 1, queries.plain, (size_t)(ATTN_DECODE_QUERIES * d));
    for (int64_t i = 0; i < ATTN_DECODE_QUERIES; i++) {
        kernels->pack(queries.plain + i * d, 1, d, queries.packed + i * width);
        float *back = guarded_floats((size_t)d, GUARD_BEHIND);
        kernels->unpack(queries.packed + i * width, d, back, 1);
        CHECK_SAME_BITS(back, queries.plain + i * d, (size_t)d);
    }
    return queries;
}

static float *score_block(void)
{
    return guarded_panel(ATTN_DECODE_BLOCK * ATTN_DECODE_QUERIES, GUARD_BEHIND);
}

static void check_scores(const struct attn_decode_storage *kernels, enum attn_storage storage,
                         int64_t keys, int64_t d, enum guard_side side)
{
    struct random_source source = {(uint64_t)(keys * 1000 + d)};
    struct rows rows = make_rows(&source, storage, keys, d, side);
    struct queries queries = make_queries(kernels, &source, d);
    float *alone = score_block();
    for (int64_t i = 0; i < ATTN_DECODE_QUERIES; i++)
        kernels->scores(queries.packed + i * attn_decode_width(d), 1, d, &rows.stored, keys, 0.5f,
                        alone + i * ATTN_DECODE_BLOCK);
    for (int64_t count = 1; count <= ATTN_DECODE_QUERIES; count++) {
        float *s = score_block();
        const int64_t stride = attn_decode_stride(count);
        kernels->scores(queries.packed, count, d, &rows.stored, keys, 0.5f, s);
        for (int64_t j = 0; j < keys; j++)
            for (int64_t i = 0; i < count; i++) {
                double sum = 0, size = 0;
                for (int64_t c = 0; c < d; c++) {
                    double term = (double)queries.plain[i * d + c] * rows.values[j * d + c];
                    sum += term;
                    size += fabs(term);
                }
                CHECK_WITHIN(s[j * stride + i], 0.5 * sum, (double)(d + 4) * 0x1p-24 * size);
                CHECK_SAME_BITS(s + j * stride + i, alone + i * ATTN_DECODE_BLOCK + j, 1);
            }
    }
}

static void check_blend(const struct attn_decode_storage *kernels, enum attn_storage storage,
                        int64_t keys, int64_t d, enum guard_side side)
{
    struct random_source source = {(uint64_t)(keys * 999 + d)};
    struct rows rows = make_rows(&source, storage, keys, d, side);
    const int64_t width = attn_decode_width(d), begin = keys / 3;
    const void **table = guarded_bytes((size_t)keys * sizeof *table, sizeof *table, GUARD_BEHIND);
    for (int64_t j = 0; j < keys; j++)
        table[j] = (const char *)rows.stored.data + j * rows.stored.stride;
    struct attn_stored_rows paged = rows.stored;
    paged.table = table;
    paged.data = NULL;
    float *weights = guarded_floats((size_t)(ATTN_DECODE_QUERIES * keys), GUARD_BEHIND);
    random_floats(&source, 0, 1, weights, (size_t)(ATTN_DECODE_QUERIES * keys));
    float *alone = guarded_floats((size_t)(ATTN_DECODE_QUERIES * d), GUARD_BEHIND);
    for (int64_t count = -ATTN_DECODE_QUERIES; count <= ATTN_DECODE_QUERIES; count++) {
        /* First each query by itself, in reverse; then that many at once. */
        int64_t first = count < 0 ? -count - 1 : 0, some = count < 0 ? 1 : count;
        if (count == 0)
            continue;
        const int64_t stride = attn_decode_stride(some);
        float *s = score_block(), *outputs = guarded_panel((size_t)(some * width), side);
        memset(outputs, 0, (size_t)(some * width) * sizeof *outputs);
        for (int64_t j = 0; j < keys; j++)
            for (int64_t i = 0; i < some; i++)
                s[j * stride + i] = j % 5 == 1 ? -0.0f : weights[(first + i) * keys + j];
        kernels->blend(s, some, begin, keys, count % 2, count > 0 ? &paged : &rows.stored, d,
                       outputs);
        for (int64_t i = 0; i < some; i++) {
            float *o = guarded_floats((size_t)d, GUARD_BEHIND);
            kernels->unpack(outputs + i * width, d, o, 1);
            if (count < 0)
                memcpy(alone + first * d, o, (size_t)d * sizeof *o);
            else
                CHECK_SAME_BITS(o, alone + i * d, (size_t)d);
            for (int64_t c = 0; c < d; c++) {
                double sum = 0, size = 0;
                for (int64_t j = begin; j < keys; j++) {
                    if (j % 5 == 1)
                        continue;
                    double term = (double)weights[(first + i) * keys + j] * rows.values[j * d + c];
                    sum += term;
                    size += fabs(term);
                }
                CHECK_WITHIN(o[c], sum, (double)(keys + 2) * 0x1p-24 * size);
            }
        }
    }
}

static void each_size(attn_isa isa,
                      void (*check)(const struct attn_decode_storage *, enum attn_storage, int64_t,
                                    int64_t, enum guard_side))
{
    const struct attn_decode_kernels *kernels = attn_kernels_for(isa)->decode;
    for (enum attn_storage storage = 0; storage < ATTN_STORAGE_COUNT; storage++)
        for (size_t n = 0; n < COUNT(dims) * COUNT(lengths); n += 2) {
            int64_t keys = lengths[n % COUNT(lengths)], d = dims[n % COUNT(dims)];
            test_context("storage %d, %d keys, d %d", (int)storage, (int)keys, (int)d);
            check(&kernels->storage[storage], storage, keys, d,
                  n % 4 ? GUARD_BEHIND : GUARD_BEFORE);
            guarded_release_all();
        }
}

static void scores(attn_isa isa)
{
    each_size(isa, check_scores);
}

static void blends(attn_isa isa)
{
    each_size(isa, check_blend);
}

/* Rows whose weights are all −0 are not read, those with a single +0 are. */
static void excluded_rows_are_skipped(attn_isa isa)
{
    enum { KEYS = 100, D = 24 };
    const struct attn_decode_storage *kernels =
        &attn_kernels_for(isa)->decode->storage[ATTN_STORAGE_F32];
    float *v = guarded_floats(KEYS * D, GUARD_BEHIND), *s = score_block();
    struct attn_stored_rows rows = {.data = v, .stride = D * sizeof(float)};
    float *outputs = guarded_panel((size_t)(2 * attn_decode_width(D)), GUARD_BEHIND);
    for (int kept = 0; kept < 2; kept++) {
        for (int i = 0; i < KEYS * D; i++)
            v[i] = i / D == 40 ? NAN : 1.0f;
        memset(outputs, 0, (size_t)(2 * attn_decode_width(D)) * sizeof *outputs);
        for (int j = 0; j < KEYS; j++)
            s[2 * j] = s[2 * j + 1] = j == 40 ? -0.0f : 1.0f;
        if (kept)
            s[2 * 40 + 1] = 0.0f;
        kernels->blend(s, 2, 0, KEYS, true, &rows, D, outputs);
        CHECK_ALL(outputs, kept ? NAN : KEYS - 1, D);
    }
}

/* The largest of `first` and `count` numbers that stand `stride` apart. */
static double largest(float first, const float *numbers, int64_t count, int64_t stride)
{
    float most = first;
    for (int64_t n = 0; n < count; n++)
        if (numbers[n * stride] > most)
            most = numbers[n * stride];
    return (double)most;
}

static void softmax(attn_isa isa)
{
    const struct attn_decode_kernels *kernels = attn_kernels_for(isa)->decode;
    struct random_source source = {3};
    for (int64_t count = 1; count <= ATTN_DECODE_QUERIES; count++)
        for (size_t n = 0; n < COUNT(lengths); n++) {
            enum { WIDTH = 32 };
            const int64_t keys = lengths[n], stride = attn_decode_stride(count);
            float *s = score_block(), *before = score_block();
            float *outputs = guarded_panel(ATTN_DECODE_QUERIES * WIDTH, GUARD_BEHIND);
            float m[4] = {-INFINITY, 3, 90, -INFINITY}, l[4] = {0, 2, 5, 0};
            const float m_old[4] = {-INFINITY, 3, 90, -INFINITY}, l_old[4] = {0, 2, 5, 0};
            for (int64_t j = 0; j < keys; j++)
                for (int64_t i = 0; i < count; i++) {
                    bool excluded = i == 3 || (j + i) % 4 == 3;
                    float score = random_float(&source, -20, 20);
                    before[j * stride + i] = s[j * stride + i] = excluded ? -INFINITY : score;
                }
            for (int64_t c = 0; c < count * WIDTH; c++)
                outputs[c] = m_old[c / WIDTH] == -INFINITY ? 0 : 1;
            bool excluded = kernels->softmax(s, count, keys, m, l, outputs, WIDTH);
            test_context("%d queries, %d keys", (int)count, (int)keys);
            if (keys > 3)
                CHECK(excluded);
            for (int64_t i = 0; i < count; i++) {
                double maximum = largest(m_old[i], before + i, keys, stride), sum = 0;
                double factor = m_old[i] == -INFINITY ? 0 : exp((double)m_old[i] - maximum);
                for (int64_t j = 0; j < keys; j++) {
                    float score = before[j * stride + i], weight = s[j * stride + i];
                    if (score == -INFINITY) {
                        CHECK(weight == 0 && signbit(weight));
                        continue;
                    }
                    double exact = exp((double)score - maximum);
                    /* Subnormal results may be 0. */
                    CHECK_WITHIN(weight, exact, 4e-6 * exact + 0x1p-126);
                    sum += exact;
                }
                CHECK_WITHIN(m[i], maximum == -INFINITY ? (double)m[i] : maximum, 0);
                CHECK_WITHIN(l[i], (double)l_old[i] * factor + sum,
                             1e-5 * ((double)l_old[i] + sum));
                if (m_old[i] > -INFINITY)
                    CHECK_WITHIN(outputs[i * WIDTH], factor, 1e-5 * factor);
            }
            if (count == 4) {
                CHECK(m[3] == -INFINITY);
                CHECK(l[3] == 0);
            }
            guarded_release_all();
        }
}

/* NaN and +inf among the scores of one query leave the others alone. */
static void broken_scores(attn_isa isa)
{
    const struct attn_decode_kernels *kernels = attn_kernels_for(isa)->decode;
    float *s = score_block();
    float *outputs = guarded_panel(4 * 32, GUARD_BEHIND);
    memset(outputs, 0, 4 * 32 * sizeof *outputs);
    float m[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, l[4] = {0};
    for (int n = 0; n < 40 * 4; n++)
        s[n] = 1;
    s[4 * 7] = NAN;
    s[4 * 9 + 2] = INFINITY;
    kernels->softmax(s, 4, 40, m, l, outputs, 32);
    CHECK(isnan(l[0]) && isnan(l[2]));
    CHECK(l[1] == 40 && l[3] == 40 && m[1] == 1);
}

static void merging_and_finishing(attn_isa isa)
{
    enum { WIDTH = 64 };
    const struct attn_decode_kernels *kernels = attn_kernels_for(isa)->decode;
    float *total = guarded_panel(WIDTH, GUARD_BEHIND), *part = guarded_panel(WIDTH, GUARD_BEHIND);
    float m = -INFINITY, l = 0;
    for (int c = 0; c < WIDTH; c++) {
        total[c] = 0;
        part[c] = (float)c;
    }
    kernels->merge(&m, &l, total, -INFINITY, 0, part, WIDTH);
    CHECK(m == -INFINITY && l == 0 && total[5] == 0);
    kernels->merge(&m, &l, total, 2, 3, part, WIDTH);
    CHECK(m == 2 && l == 3);
    CHECK_SAME_BITS(total, part, WIDTH);
    kernels->merge(&m, &l, total, 4, 1, part, WIDTH);
    CHECK(m == 4);
    CHECK_WITHIN(l, 1 + 3 * exp(-2), 1e-6);
    CHECK_WITHIN(total[10], 10 * (1 + exp(-2)), 1e-5);
    kernels->merge(&m, &l, total, 0, 2, part, WIDTH);
    CHECK(m == 4);
    CHECK_WITHIN(l, 1 + 3 * exp(-2) + 2 * exp(-4), 1e-6);
    CHECK(kernels->is_finite(total, WIDTH));
    total[WIDTH - 1] = NAN;
    CHECK(!kernels->is_finite(total, WIDTH));
    total[WIDTH - 1] = -INFINITY;
    CHECK(!kernels->is_finite(total, WIDTH));
    total[0] = -0.0f;
    kernels->finish(total, 2, WIDTH);
    CHECK(!signbit(total[0]));
    CHECK_WITHIN(total[10], 5 * (1 + exp(-2) + exp(-4)), 1e-5);
    kernels->finish(total, 0, WIDTH);
    CHECK_ALL(total, 0, WIDTH);
}

int main(void)
{
    isa_each("scores", scores);
    isa_each("blends", blends);
    isa_each("excluded rows are skipped", excluded_rows_are_skipped);
    isa_each("softmax", softmax);
    isa_each("broken scores", broken_scores);
    isa_each("merging and finishing", merging_and_finishing);
    return test_finish();
}
