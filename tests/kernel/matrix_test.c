/* Stored matrices: blocks against their definition and GGML's own reading of them, products against
 * doubles, and the laws of bits, places and bounds. */
#include "harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"
#include "kernel/kernel.h"
#include "kernel/matrix_scalar.h"
#include "kernel/storage_scalar.h"

static const char *const names[ATTN_MATRIX_TYPES] = {
    [ATTN_MATRIX_F32] = "F32",   [ATTN_MATRIX_F16] = "F16",   [ATTN_MATRIX_BF16] = "BF16",
    [ATTN_MATRIX_Q8_0] = "Q8_0", [ATTN_MATRIX_Q4_0] = "Q4_0", [ATTN_MATRIX_Q4_1] = "Q4_1",
    [ATTN_MATRIX_Q5_0] = "Q5_0", [ATTN_MATRIX_Q5_1] = "Q5_1", [ATTN_MATRIX_Q4_K] = "Q4_K",
    [ATTN_MATRIX_Q5_K] = "Q5_K", [ATTN_MATRIX_Q6_K] = "Q6_K",
};

/* How many roundings of the largest term in a block a product may be off: a sum of n terms in a
 * vector's lanes rounds n / lanes times and more. */
#define PRODUCT_ERROR_FACTOR 8.0

/* Where blocks have numbers of f16, −1 for none. */
static void places_of_halves(enum attn_matrix_type type, int places[2])
{
    places[0] = type == ATTN_MATRIX_Q6_K                              ? 208
                : type == ATTN_MATRIX_F32 || type == ATTN_MATRIX_BF16 ? -1
                                                                      : 0;
    places[1] = type == ATTN_MATRIX_Q4_1 || type == ATTN_MATRIX_Q5_1 || type == ATTN_MATRIX_Q4_K ||
                        type == ATTN_MATRIX_Q5_K
                    ? 2
                    : -1;
}

static const struct attn_matrix_kernels *matrices_of(attn_isa isa)
{
    return attn_kernels_for(isa)->matrices;
}

/* Random bytes, but that numbers of 16 and 32 bits are in −2..2. */
static void fill_blocks(enum attn_matrix_type type, int64_t blocks, struct random_source *source,
                        unsigned char *bytes)
{
    const int64_t size = attn_matrix_block_bytes(type);
    int places[2];
    places_of_halves(type, places);
    for (int64_t n = 0; n < blocks; n++, bytes += size) {
        for (int64_t i = 0; i < size; i++)
            bytes[i] = (unsigned char)random_bits(source);
        float number = random_float(source, -2, 2);
        if (type == ATTN_MATRIX_F32)
            memcpy(bytes, &number, sizeof number);
        if (type == ATTN_MATRIX_BF16)
            attn_narrow_scalar(ATTN_STORAGE_BF16, &number, 1, bytes);
        for (int i = 0; i < 2; i++)
            if (places[i] >= 0) {
                uint16_t half;
                number = random_float(source, -2, 2);
                attn_narrow_scalar(ATTN_STORAGE_F16, &number, 1, &half);
                memcpy(bytes + places[i], &half, sizeof half);
            }
    }
}

/* A matrix, and vectors that it is multiplied with; guarded memory of the test. */
struct problem {
    enum attn_matrix_type type;
    int64_t rows, width, count, y_stride;
    unsigned char *weights;
    float *x;     /* [count][width] */
    void *packed; /* of the kernels that were asked last */
    float *y;     /* [count][y_stride] */
};

/* The weights lie flush against the guard page, aligned to nothing. */
static void make_problem(struct problem *problem, enum attn_matrix_type type, int64_t rows,
                         int64_t width, int64_t count, enum guard_side side)
{
    struct random_source source = {(uint64_t)(type * 1000 + width)};
    *problem = (struct problem){type, rows, width, count, rows + 3, NULL, NULL, NULL, NULL};
    const int64_t bytes = rows * attn_matrix_row_bytes(type, width);
    problem->weights = guarded_bytes((size_t)bytes, 1, side);
    fill_blocks(type, bytes / attn_matrix_block_bytes(type), &source, problem->weights);
    problem->x = guarded_floats((size_t)(count * width), side);
    random_floats(&source, -2, 2, problem->x, (size_t)(count * width));
}

static void multiply(const struct attn_matrix_kernels *kernels, struct problem *problem,
                     enum guard_side side)
{
    const int64_t bytes = kernels->vector_bytes(problem->type, problem->width);
    CHECK_EQUAL(bytes % ATTN_ALIGNMENT, 0);
    problem->packed = guarded_bytes((size_t)(problem->count * bytes), ATTN_ALIGNMENT, side);
    problem->y = guarded_floats((size_t)(problem->count * problem->y_stride), side);
    for (int64_t i = 0; i < problem->count; i++)
        kernels->pack_vector(problem->type, problem->x + i * problem->width, problem->width,
                             (char *)problem->packed + i * bytes);
    kernels->multiply(problem->type, problem->weights, problem->rows, problem->width,
                      problem->packed, problem->count, problem->y, problem->y_stride);
}

static const unsigned char *row_of(const struct problem *problem, int64_t row)
{
    return problem->weights + row * attn_matrix_row_bytes(problem->type, problem->width);
}

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += (double)a[c] * (double)b[c];
    return sum;
}

static double size_of(const float *a, int64_t count)
{
    double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += fabs((double)a[c]);
    return sum;
}

static double largest_of(const float *a, int64_t count)
{
    double largest = 0;
    for (int64_t c = 0; c < count; c++)
        if (fabs((double)a[c]) > largest)
            largest = fabs((double)a[c]);
    return largest;
}

/* Of d·q + m both parts may be larger than the weight, so the row's largest weight says how far a
 * product may be off. */
static void check_products(const struct problem *problem)
{
    const int64_t width = problem->width;
    float *weights = guarded_floats((size_t)width, GUARD_BEHIND);
    for (int64_t r = 0; r < problem->rows; r++) {
        attn_matrix_kernels_scalar.unpack(problem->type, row_of(problem, r), 0, width, weights);
        const double largest = largest_of(weights, width);
        for (int64_t i = 0; i < problem->count; i++) {
            const float *x = problem->x + i * width;
            CHECK_WITHIN(problem->y[i * problem->y_stride + r], dot(weights, x, width),
                         PRODUCT_ERROR_FACTOR * 0x1p-24 * largest * size_of(x, width));
        }
    }
    for (int64_t i = 0; i < problem->count; i++)
        CHECK_UNWRITTEN(problem->y + i * problem->y_stride + problem->rows,
                        (size_t)(problem->y_stride - problem->rows));
}

static void each_type(attn_isa isa, void (*body)(attn_isa isa, enum attn_matrix_type type))
{
    for (enum attn_matrix_type type = 0; type < ATTN_MATRIX_TYPES; type++) {
        test_context("%s", names[type]);
        body(isa, type);
        guarded_release_all();
    }
}

/* Whole blocks; of types without blocks any number. */
static int64_t width_of(enum attn_matrix_type type, int64_t blocks)
{
    return blocks * attn_matrix_block(type);
}

static void check_products_at(attn_isa isa, enum attn_matrix_type type, int64_t rows, int64_t width)
{
    for (int64_t count = 1; count <= ATTN_MATRIX_VECTORS; count++)
        for (enum guard_side side = GUARD_BEHIND; side <= GUARD_BEFORE; side++) {
            struct problem problem;
            test_context("%s, %lld rows of %lld, %lld vectors, guard %s", names[type],
                         (long long)rows, (long long)width, (long long)count,
                         side == GUARD_BEHIND ? "behind" : "before");
            make_problem(&problem, type, rows, width, count, side);
            multiply(matrices_of(isa), &problem, side);
            check_products(&problem);
            guarded_release_all();
        }
}

static void products_of_any_width(attn_isa isa, enum attn_matrix_type type)
{
    const int64_t most = attn_matrix_block(type) == 1 ? 70 : attn_matrix_block(type) == 32 ? 20 : 4;
    for (int64_t blocks = 0; blocks <= most; blocks++)
        if (test_takes_one_in(5))
            check_products_at(isa, type, 5, width_of(type, blocks));
    /* More units than have their scales held at once. */
    check_products_at(isa, type, 5, width_of(type, most == 4 ? 17 : most == 20 ? 131 : 4099));
}

static void products_of_any_rows(attn_isa isa, enum attn_matrix_type type)
{
    for (int64_t rows = 0; rows <= 40; rows++)
        if (test_takes_one_in(7))
            check_products_at(isa, type, rows,
                              width_of(type, attn_matrix_block(type) == 1 ? 37 : 3));
}

static void any_width(attn_isa isa)
{
    each_type(isa, products_of_any_width);
}

static void any_rows(attn_isa isa)
{
    each_type(isa, products_of_any_rows);
}

/* Each number alone, and in all company. */
static void bits_in_company(attn_isa isa, enum attn_matrix_type type)
{
    enum { ROWS = 23 };
    const struct attn_matrix_kernels *kernels = matrices_of(isa);
    struct problem all;
    make_problem(&all, type, ROWS, width_of(type, attn_matrix_block(type) == 1 ? 77 : 5),
                 ATTN_MATRIX_VECTORS, GUARD_BEHIND);
    multiply(kernels, &all, GUARD_BEHIND);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < ATTN_MATRIX_VECTORS; i++) {
            struct problem one = all;
            one.rows = one.count = 1;
            one.y_stride = 4;
            one.weights = all.weights + r * attn_matrix_row_bytes(type, all.width);
            one.x = all.x + i * all.width;
            multiply(kernels, &one, GUARD_BEHIND);
            CHECK_SAME_BITS(one.y, all.y + i * all.y_stride + r, 1);
        }
    for (int64_t count = 2; count < ATTN_MATRIX_VECTORS; count++) {
        struct problem some = all;
        some.count = count;
        multiply(kernels, &some, GUARD_BEHIND);
        for (int64_t i = 0; i < count; i++)
            CHECK_SAME_BITS(some.y + i * all.y_stride, all.y + i * all.y_stride, ROWS);
    }
}

static void bits_are_a_rows_own(attn_isa isa)
{
    each_type(isa, bits_in_company);
}

static void spoil_one_vector(attn_isa isa, enum attn_matrix_type type)
{
    enum { ROWS = 9 };
    const float spoilers[] = {NAN, INFINITY, -INFINITY};
    const int64_t width = width_of(type, attn_matrix_block(type) == 1 ? 70 : 2);
    struct problem whole, spoilt;
    make_problem(&whole, type, ROWS, width, ATTN_MATRIX_VECTORS, GUARD_BEHIND);
    multiply(matrices_of(isa), &whole, GUARD_BEHIND);
    for (size_t n = 0; n < COUNT(spoilers); n++)
        for (int64_t c = 0; c < width; c += 23) {
            make_problem(&spoilt, type, ROWS, width, ATTN_MATRIX_VECTORS, GUARD_BEHIND);
            spoilt.x[width + c] = spoilers[n];
            multiply(matrices_of(isa), &spoilt, GUARD_BEHIND);
            for (int64_t i = 0; i < ATTN_MATRIX_VECTORS; i++)
                if (i != 1)
                    CHECK_SAME_BITS(spoilt.y + i * spoilt.y_stride, whole.y + i * whole.y_stride,
                                    ROWS);
            for (int64_t r = 0; r < ROWS; r++)
                CHECK(!isfinite(spoilt.y[spoilt.y_stride + r]));
        }
}

static void what_is_not_finite_stays_in_its_vector(attn_isa isa)
{
    each_type(isa, spoil_one_vector);
}

/* All parts of a row that begin and end between blocks, with the bits of the plain code. */
static void unpack_parts_of_a_row(attn_isa isa, enum attn_matrix_type type)
{
    const int64_t block = attn_matrix_block(type), blocks = block == 1 ? 40 : block == 32 ? 70 : 11;
    const int64_t width = blocks * block, step = blocks / 8;
    struct problem problem;
    make_problem(&problem, type, 1, width, 1, GUARD_BEHIND);
    float *expected = guarded_floats((size_t)width, GUARD_BEHIND);
    attn_matrix_kernels_scalar.unpack(type, problem.weights, 0, width, expected);
    for (int64_t begin = 0; begin <= blocks; begin += step)
        for (int64_t end = blocks; end >= begin; end -= step) {
            int64_t count = (end - begin) * block;
            float *values = guarded_floats((size_t)count, GUARD_BEHIND);
            uint16_t *halves = guarded_bytes((size_t)count * 2, 2, GUARD_BEHIND);
            uint16_t *rounded = guarded_bytes((size_t)count * 2, 2, GUARD_BEHIND);
            matrices_of(isa)->unpack(type, problem.weights, begin * block, count, values);
            matrices_of(isa)->unpack_bf16(type, problem.weights, begin * block, count, halves);
            attn_narrow_scalar(ATTN_STORAGE_BF16, expected + begin * block, count, rounded);
            CHECK_SAME_BITS(values, expected + begin * block, (size_t)count);
            CHECK(memcmp(halves, rounded, (size_t)count * sizeof *halves) == 0);
        }
}

/* Every byte at every place of a block: all numbers, scales and minima. */
static void unpack_random_blocks(attn_isa isa, enum attn_matrix_type type)
{
    enum { ROWS = 60 };
    struct problem problem;
    make_problem(&problem, type, ROWS, width_of(type, 64), 1, GUARD_BEHIND);
    float *expected = guarded_floats((size_t)problem.width, GUARD_BEHIND);
    float *values = guarded_floats((size_t)problem.width, GUARD_BEHIND);
    for (int64_t r = 0; r < (test_is_reduced() ? 3 : ROWS); r++) {
        attn_matrix_kernels_scalar.unpack(type, row_of(&problem, r), 0, problem.width, expected);
        matrices_of(isa)->unpack(type, row_of(&problem, r), 0, problem.width, values);
        CHECK_SAME_BITS(values, expected, (size_t)problem.width);
    }
}

static void unpacked_bits(attn_isa isa)
{
    each_type(isa, unpack_parts_of_a_row);
    each_type(isa, unpack_random_blocks);
}

static void read_golden(FILE *file, void *to, size_t size)
{
    if (fread(to, 1, size, file) != size)
        test_bail_out("tests/data/golden/matrix.bin is too short");
}

static void blocks_mean_what_ggml_reads(attn_isa isa)
{
    enum { BLOCKS = 3 };
    char path[4096];
    const char *directory = getenv("ATTN_TEST_DATA");
    snprintf(path, sizeof path, "%s/golden/matrix.bin", directory ? directory : "tests/data");
    FILE *file = fopen(path, "rb");
    if (!file)
        test_bail_out("no tests/data/golden: set ATTN_TEST_DATA");
    for (enum attn_matrix_type type = ATTN_MATRIX_Q8_0; type < ATTN_MATRIX_TYPES; type++) {
        const int64_t count = BLOCKS * attn_matrix_block(type);
        const size_t bytes = (size_t)(BLOCKS * attn_matrix_block_bytes(type));
        unsigned char *blocks = guarded_bytes(bytes, 1, GUARD_BEHIND);
        float *expected = guarded_floats((size_t)count, GUARD_BEHIND);
        float *values = guarded_floats((size_t)count, GUARD_BEHIND);
        read_golden(file, blocks, bytes);
        read_golden(file, expected, (size_t)count * sizeof *expected);
        matrices_of(isa)->unpack(type, blocks, 0, count, values);
        test_context("%s", names[type]);
        for (int64_t n = 0; n < count; n++)
            CHECK(values[n] == expected[n]);
    }
    CHECK_EQUAL(fgetc(file), EOF);
    fclose(file);
}

/* No row, no vector, no weight: pointers may be anything. */
static void nothing_is_touched(attn_isa isa)
{
    const struct attn_matrix_kernels *kernels = matrices_of(isa);
    float unwritten = 7, x[ATTN_MATRIX_LARGEST_BLOCK] = {0};
    for (enum attn_matrix_type type = 0; type < ATTN_MATRIX_TYPES; type++) {
        kernels->unpack(type, NULL, 0, 0, NULL);
        kernels->unpack_bf16(type, NULL, 0, 0, NULL);
        kernels->pack_vector(type, NULL, 0, NULL);
        kernels->multiply(type, NULL, 0, width_of(type, 1), x, 1, NULL, 0);
        kernels->multiply(type, x, 1, width_of(type, 1), NULL, 0, &unwritten, 1);
    }
    CHECK(unwritten == 7);
}

int main(void)
{
    isa_each("matrix: blocks mean what GGML reads in them", blocks_mean_what_ggml_reads);
    isa_each("matrix: unpacked bits are those of plain code", unpacked_bits);
    isa_each("matrix: products of any width", any_width);
    isa_each("matrix: products of any number of rows", any_rows);
    isa_each("matrix: a product's bits are its row's and its vector's", bits_are_a_rows_own);
    isa_each("matrix: NaN and infinity stay in their vector",
             what_is_not_finite_stays_in_its_vector);
    isa_each("matrix: nothing is touched where there is nothing", nothing_is_touched);
    return test_finish();
}
