#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "nn/dropout.h"

/* Philox4x32-10 as J. Salmon et al. give it, section 3: word `word` for a counter and a key. */
static uint32_t philox(const uint32_t counter[4], uint64_t seed, int word)
{
    uint32_t x[4], key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    memcpy(x, counter, sizeof x);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)x[0] * 0xd2511f53u, b = (uint64_t)x[2] * 0xcd9e8d57u;
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
        memcpy(x, next, sizeof x);
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return x[word];
}

static bool is_kept(const struct dropout *dropout, int64_t row, int64_t column)
{
    const uint64_t number = (uint64_t)dropout->first_row + (uint64_t)row;
    const uint32_t counter[4] = {(uint32_t)(column / 4), (uint32_t)number, (uint32_t)(number >> 32),
                                 0};
    return (double)philox(counter, dropout->seed, (int)(column % 4)) >=
           (double)dropout->rate * 0x1p32;
}

enum { ROWS = 70, WIDEST = 300 };

static void check(const struct compute *compute, const struct dropout *dropout, int64_t rows,
                  int64_t width)
{
    static float x[ROWS * WIDEST], y[ROWS * WIDEST + 1];
    for (int64_t n = 0; n < rows * width; n++)
        x[n] = (float)n + 1.0f;
    for (int64_t n = 0; n <= rows * width; n++)
        y[n] = NAN;
    dropout_apply(compute, dropout, rows, width, x, y);
    const float factor = (float)(1.0 / (1.0 - (double)dropout->rate));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < width; c++) {
            float expected = is_kept(dropout, i, c) ? x[i * width + c] * factor : 0.0f;
            if (!(y[i * width + c] == expected))
                fail_msg("rate %g, %d rows of %d: row %d, column %d is %.9g, expected %.9g",
                         (double)dropout->rate, (int)rows, (int)width, (int)i, (int)c,
                         (double)y[i * width + c], (double)expected);
        }
    assert_true(isnan(y[rows * width]));

    dropout_apply(compute, dropout, rows, width, x, x);
    assert_memory_equal(x, y, (size_t)(rows * width) * sizeof *x);
}

static void definition(const struct compute *compute)
{
    const int64_t sizes[][2] = {{1, 1},  {1, 300}, {2, 3},   {7, 64},   {8, 65},
                                {9, 63}, {33, 5},  {64, 16}, {70, 300}, {0, 4}};
    const float rates[] = {0.0f, 1e-9f, 0.1f, 0.5f, 0.999f};
    /* Where the lower half of the row's number begins anew, in the middle of a vector. */
    const int64_t firsts[] = {0, 5, (INT64_C(1) << 32) - 3, INT64_C(3) << 40};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++)
            for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++) {
                const struct dropout dropout = {rates[r], UINT64_C(0x123456789abcdef0), firsts[f]};
                check(compute, &dropout, sizes[s][0], sizes[s][1]);
            }
}

static void test_definition(void **state)
{
    (void)state;
    each_isa(2, definition);
}

/* The test's own generator against the vectors that its authors publish (Random123, kat_vectors).
 */
static void test_known_answers(void **state)
{
    (void)state;
    const struct {
        uint32_t counter[4];
        uint64_t seed;
        uint32_t words[4];
    } known[] = {
        {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         UINT64_MAX,
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         UINT64_C(0x299f31d0a4093822),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t n = 0; n < sizeof known / sizeof known[0]; n++)
        for (int word = 0; word < 4; word++)
            assert_true(philox(known[n].counter, known[n].seed, word) == known[n].words[word]);
}

/* Each part of a batch draws what the whole does. */
static void test_parts(void **state)
{
    (void)state;
    static float whole[ROWS * WIDEST], parts[ROWS * WIDEST];
    for (int n = 0; n < ROWS * WIDEST; n++)
        whole[n] = parts[n] = 1.0f;
    struct compute compute = make_compute(1);
    const struct dropout all = {0.3f, 17, 1000};
    dropout_apply(&compute, &all, ROWS, WIDEST, whole, whole);
    for (int first = 0; first < ROWS; first += 23) {
        const struct dropout part = {0.3f, 17, 1000 + first};
        int rows = ROWS - first < 23 ? ROWS - first : 23;
        dropout_apply(&compute, &part, rows, WIDEST, parts + first * WIDEST,
                      parts + first * WIDEST);
    }
    compute_destroy(&compute);
    assert_memory_equal(parts, whole, sizeof whole);
}

/* The share that is left out, and the mean that stays, within five deviations. */
static void test_rate(void **state)
{
    (void)state;
    enum { COUNT = 1000 * WIDEST };
    float *x = malloc(COUNT * sizeof *x);
    assert_non_null(x);
    struct compute compute = make_compute(1);
    const float rates[] = {0.1f, 0.5f, 0.9f};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        double kept = 0.0, sum = 0.0, rate = (double)rates[r];
        for (int n = 0; n < COUNT; n++)
            x[n] = 1.0f;
        const struct dropout dropout = {rates[r], dropout_seed(1, 2, 3), 0};
        dropout_apply(&compute, &dropout, 1000, WIDEST, x, x);
        for (int n = 0; n < COUNT; n++) {
            kept += x[n] != 0.0f;
            sum += (double)x[n];
        }
        double deviation = sqrt(rate * (1.0 - rate) / COUNT);
        assert_true(fabs(kept / COUNT - (1.0 - rate)) <= 5.0 * deviation);
        assert_true(fabs(sum / COUNT - 1.0) <= 5.0 * deviation / (1.0 - rate));
    }
    compute_destroy(&compute);
    free(x);
}

static int compare_seeds(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

/* Places, steps and seeds that are neighbours, or change roles, have seeds of their own. */
static void test_seeds_differ(void **state)
{
    (void)state;
    enum { SIDE = 24 };
    static uint64_t seeds[SIDE * SIDE * SIDE];
    size_t count = 0;
    for (uint64_t seed = 0; seed < SIDE; seed++)
        for (int64_t step = 0; step < SIDE; step++)
            for (int64_t place = 0; place < SIDE; place++)
                seeds[count++] = dropout_seed(seed, step, place);
    assert_true(dropout_seed(3, 4, 5) == dropout_seed(3, 4, 5));
    qsort(seeds, count, sizeof *seeds, compare_seeds);
    for (size_t n = 1; n < count; n++)
        assert_true(seeds[n - 1] != seeds[n]);
}

static void apply(const struct compute *compute, float *y)
{
    for (int n = 0; n < ROWS * WIDEST; n++)
        y[n] = sinf((float)n);
    const struct dropout dropout = {0.25f, 99, 12345};
    dropout_apply(compute, &dropout, ROWS, WIDEST, y, y);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    each_thread_count(ROWS * WIDEST, apply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_definition),
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_rate),
        cmocka_unit_test(test_seeds_differ),  cmocka_unit_test(test_threads_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
