#include "accuracy_problem.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *accuracy_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "accuracy: no memory\n");
        exit(1);
    }
    return memory;
}

/* The splitmix64 generator (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
 * generators" (2014)), in (0, 1]. */
static double random_unit(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)((z >> 11) + 1) * 0x1p-53;
}

/* G. Box, M. Muller, "A Note on the Generation of Random Normal Deviates" (1958). */
static double random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(random_unit(state)));
    return radius * cos(6.28318530717958648 * random_unit(state));
}

static uint32_t bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Numbers to store are chosen among those that the type has, so that storing is exact: `bits` bits
 * of precision. The numbers here are far from the ends of each type's range. */
static double with_precision(double number, int bits)
{
    int exponent;
    double fraction = frexp(number, &exponent);
    /* f16 has no number smaller than 2⁻²⁴, and steps of that below 2⁻¹⁴. */
    if (bits == 11 && exponent < -13)
        return ldexp(rint(ldexp(number, 24)), -24);
    return ldexp(rint(ldexp(fraction, bits)), exponent - bits);
}

static uint16_t f16_bits(double number)
{
    double size = fabs(number);
    unsigned sign = number < 0 ? 0x8000 : 0;
    if (size < 0x1p-14)
        return (uint16_t)(sign | (unsigned)(size * 0x1p24));
    int exponent;
    double fraction = frexp(size, &exponent);
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 |
                      ((unsigned)(fraction * 0x1p11) & 1023));
}

/* Stores element i; gives the number that is stored. */
static double store(attn_tensor *tensor, int64_t i, double number)
{
    switch (tensor->type) {
    case ATTN_F64:
        return ((double *)tensor->data)[i] = number;
    case ATTN_F16:
        number = with_precision(number, 11);
        ((uint16_t *)tensor->data)[i] = f16_bits(number);
        return number;
    case ATTN_BF16:
        number = with_precision(number, 8);
        ((uint16_t *)tensor->data)[i] = (uint16_t)(bits_of((float)number) >> 16);
        return number;
    case ATTN_I8:
        number = rint(fmin(fmax(number, -127), 127));
        ((signed char *)tensor->data)[i] = (signed char)number;
        return number;
    default:
        return ((float *)tensor->data)[i] = (float)number;
    }
}

double *accuracy_fill(attn_tensor *tensor, attn_type type, int64_t rows, int64_t dim, double spread,
                      uint64_t *state)
{
    size_t count = (size_t)(rows * dim);
    *tensor = attn_tensor_packed(accuracy_allocate(count, sizeof(double)), type, 1, 1, rows, dim);
    double *numbers = accuracy_allocate(count, sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = store(tensor, (int64_t)i, spread * random_normal(state));
    return numbers;
}

/* Bytes for numbers of spread 1, and a scale for each row. */
static double *fill_bytes(attn_tensor *tensor, attn_tensor *scales, int64_t rows, int64_t dim,
                          uint64_t *state)
{
    double *numbers = accuracy_fill(tensor, ATTN_I8, rows, dim, 40, state);
    *scales =
        attn_tensor_packed(accuracy_allocate((size_t)rows, sizeof(float)), ATTN_F32, 1, 1, rows, 1);
    for (int64_t row = 0; row < rows; row++) {
        float scale = (float)((0.75 + 0.5 * random_unit(state)) / 40);
        ((float *)scales->data)[row] = scale;
        for (int64_t c = 0; c < dim; c++)
            numbers[row * dim + c] *= scale;
    }
    return numbers;
}

/* long double, so that f64 can be measured too where that is wider. */
static void solve_row(struct accuracy_problem *problem, const struct accuracy_shape *shape,
                      int64_t row, const double *q, const double *k, const double *v,
                      long double *weights)
{
    int64_t dim = shape->dim;
    int64_t keys = shape->causal ? shape->keys - ACCURACY_QUERIES + row + 1 : shape->keys;
    long double scale = 1 / sqrtl((long double)dim), m = -INFINITY, l = 0;
    double magnitude = 0;
    for (int64_t j = 0; j < keys; j++) {
        long double sum = 0;
        double size = 0;
        for (int64_t c = 0; c < dim; c++) {
            sum += (long double)q[row * dim + c] * k[j * dim + c];
            size += fabs(q[row * dim + c] * k[j * dim + c]);
        }
        weights[j] = scale * sum;
        m = fmaxl(m, weights[j]);
        magnitude = fmax(magnitude, (double)scale * size);
    }
    for (int64_t j = 0; j < keys; j++) {
        weights[j] = expl(weights[j] - m);
        l += weights[j];
    }
    problem->magnitude[row] = magnitude;
    for (int64_t c = 0; c < dim; c++) {
        long double sum = 0;
        double size = 0, all = 0;
        for (int64_t j = 0; j < keys; j++) {
            sum += weights[j] * v[j * dim + c];
            size += (double)weights[j] * fabs(v[j * dim + c]);
            all += fabs(v[j * dim + c]);
        }
        problem->o[row * dim + c] = (double)(sum / l);
        problem->size[row * dim + c] = size / (double)l;
        problem->tiny[row * dim + c] = 0x1p-125 * all;
    }
}

void accuracy_make(struct accuracy_problem *problem, const struct accuracy_shape *shape,
                   uint64_t seed)
{
    uint64_t state = seed;
    size_t outputs = (size_t)(ACCURACY_QUERIES * shape->dim);
    *problem = (struct accuracy_problem){
        .o = accuracy_allocate(outputs, sizeof(double)),
        .size = accuracy_allocate(outputs, sizeof(double)),
        .tiny = accuracy_allocate(outputs, sizeof(double)),
        .magnitude = accuracy_allocate(ACCURACY_QUERIES, sizeof(double)),
    };
    attn_params_init(&problem->params);
    problem->params.causal = shape->causal;
    problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;

    bool bytes = shape->type == ATTN_I8;
    double *q = accuracy_fill(&problem->q, bytes ? ATTN_F32 : shape->type, ACCURACY_QUERIES,
                              shape->dim, (double)shape->spread, &state);
    double *k, *v;
    if (bytes) {
        k = fill_bytes(&problem->k, &problem->key_scales, shape->keys, shape->dim, &state);
        v = fill_bytes(&problem->v, &problem->value_scales, shape->keys, shape->dim, &state);
        problem->params.key_scales = &problem->key_scales;
        problem->params.value_scales = &problem->value_scales;
    } else {
        k = accuracy_fill(&problem->k, shape->type, shape->keys, shape->dim, 1, &state);
        v = accuracy_fill(&problem->v, shape->type, shape->keys, shape->dim, 1, &state);
    }
    long double *weights = accuracy_allocate((size_t)shape->keys, sizeof *weights);
    for (int64_t row = 0; row < ACCURACY_QUERIES; row++)
        solve_row(problem, shape, row, q, k, v, weights);
    free(weights);
    free(q);
    free(k);
    free(v);
}

void accuracy_release(struct accuracy_problem *problem)
{
    void *const memory[] = {problem->q.data,
                            problem->k.data,
                            problem->v.data,
                            problem->key_scales.data,
                            problem->value_scales.data,
                            problem->o,
                            problem->size,
                            problem->tiny,
                            problem->magnitude};
    for (size_t n = 0; n < sizeof memory / sizeof memory[0]; n++)
        free(memory[n]);
}
