#include "accuracy_gradient_problem.h"

#include <math.h>
#include <stdlib.h>

#include "accuracy_problem.h"

/* The numbers that the tensors store, [length][dim] each. */
struct numbers {
    double *q, *k, *v, *d_o;
};

/* One query; long double, so that f64 can be measured too where that is wider. */
struct row {
    int64_t keys;
    long double *weights, *d_p; /* [length]: p_j, and Σ_c do_c·v_jc */
    double *a;                  /* [length]: A_j */
    long double *o;             /* [dim] */
    double law;                 /* 1 + S */
};

/* p_j = exp(s_j − m)/l */
static void weigh(const struct accuracy_gradient_shape *shape, const struct numbers *numbers,
                  int64_t i, struct row *row)
{
    int64_t dim = shape->dim;
    long double scale = 1 / sqrtl((long double)dim), m = -INFINITY, l = 0;
    double magnitude = 0;
    for (int64_t j = 0; j < row->keys; j++) {
        long double sum = 0;
        double size = 0;
        for (int64_t c = 0; c < dim; c++) {
            sum += (long double)numbers->q[i * dim + c] * numbers->k[j * dim + c];
            size += fabs(numbers->q[i * dim + c] * numbers->k[j * dim + c]);
        }
        row->weights[j] = scale * sum;
        m = fmaxl(m, row->weights[j]);
        magnitude = fmax(magnitude, (double)scale * size);
    }
    for (int64_t j = 0; j < row->keys; j++) {
        row->weights[j] = expl(row->weights[j] - m);
        l += row->weights[j];
    }
    for (int64_t j = 0; j < row->keys; j++)
        row->weights[j] /= l;
    row->law = 1 + magnitude;
}

/* o = Σ_j p_j·v_j, and dP_j = do·v_j with the size of its terms */
static void blend(const struct accuracy_gradient_shape *shape, const struct numbers *numbers,
                  int64_t i, struct row *row)
{
    int64_t dim = shape->dim;
    for (int64_t c = 0; c < dim; c++)
        row->o[c] = 0;
    for (int64_t j = 0; j < row->keys; j++) {
        row->d_p[j] = 0;
        row->a[j] = 0;
        for (int64_t c = 0; c < dim; c++) {
            double v = numbers->v[j * dim + c], d_o = numbers->d_o[i * dim + c];
            row->o[c] += row->weights[j] * v;
            row->d_p[j] += (long double)d_o * v;
            row->a[j] += fabs(d_o * v);
        }
    }
}

/* Adds a term, `factor` times `number`, with `size` being that of the factor. */
static void add(const struct accuracy_gradient *gradient, long double *sums, int64_t at,
                long double factor, double number, double size, double law)
{
    sums[at] += factor * number;
    gradient->size[at] += size * fabs(number);
    gradient->law[at] += law * size * fabs(number);
}

/* Sums that need more digits than the results, [length][dim] each. */
struct sums {
    long double *d_q, *d_k, *d_v;
};

static void differentiate(const struct accuracy_gradient_shape *shape,
                          const struct numbers *numbers, int64_t i, const struct row *row,
                          struct accuracy_gradient_problem *problem, const struct sums *sums)
{
    int64_t dim = shape->dim;
    long double scale = 1 / sqrtl((long double)dim), delta = 0;
    double mean_a = 0, b = 0;
    for (int64_t c = 0; c < dim; c++) {
        delta += numbers->d_o[i * dim + c] * row->o[c];
        b += fabs(numbers->d_o[i * dim + c] * (double)row->o[c]);
    }
    for (int64_t j = 0; j < row->keys; j++)
        mean_a += (double)row->weights[j] * row->a[j];
    for (int64_t j = 0; j < row->keys; j++) {
        double p = (double)row->weights[j];
        long double ds = scale * row->weights[j] * (row->d_p[j] - delta);
        double size = (double)scale * (row->a[j] + mean_a), of_o = (double)scale * p * b;
        for (int64_t c = 0; c < dim; c++) {
            int64_t at_i = i * dim + c, at_j = j * dim + c;
            double q = numbers->q[at_i], k = numbers->k[at_j], d_o = numbers->d_o[at_i];
            add(&problem->d_v, sums->d_v, at_j, row->weights[j], d_o, p, row->law);
            add(&problem->d_q, sums->d_q, at_i, ds, k, p * size, row->law);
            add(&problem->d_k, sums->d_k, at_j, ds, q, p * size, row->law);
            problem->d_q.of_o[at_i] += of_o * fabs(k);
            problem->d_k.of_o[at_j] += of_o * fabs(q);
            problem->d_v.tiny[at_j] += 0x1p-125 * fabs(d_o);
            problem->d_q.tiny[at_i] += 0x1p-125 * size * fabs(k);
            problem->d_k.tiny[at_j] += 0x1p-125 * size * fabs(q);
        }
    }
}

static void make_gradient(struct accuracy_gradient *gradient, size_t count)
{
    double **const arrays[] = {&gradient->right, &gradient->size, &gradient->law, &gradient->of_o,
                               &gradient->tiny};
    for (size_t n = 0; n < sizeof arrays / sizeof arrays[0]; n++)
        *arrays[n] = accuracy_allocate(count, sizeof(double));
}

static void round_sums(const struct accuracy_gradient *gradient, long double *sums, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gradient->right[i] = (double)sums[i];
    free(sums);
}

static void solve(const struct accuracy_gradient_shape *shape, const struct numbers *numbers,
                  struct accuracy_gradient_problem *problem)
{
    size_t length = (size_t)shape->length, count = length * (size_t)shape->dim;
    make_gradient(&problem->d_q, count);
    make_gradient(&problem->d_k, count);
    make_gradient(&problem->d_v, count);
    const struct sums sums = {accuracy_allocate(count, sizeof(long double)),
                              accuracy_allocate(count, sizeof(long double)),
                              accuracy_allocate(count, sizeof(long double))};
    struct row row = {.weights = accuracy_allocate(length, sizeof(long double)),
                      .d_p = accuracy_allocate(length, sizeof(long double)),
                      .a = accuracy_allocate(length, sizeof(double)),
                      .o = accuracy_allocate((size_t)shape->dim, sizeof(long double))};
    for (int64_t i = 0; i < shape->length; i++) {
        row.keys = shape->causal ? i + 1 : shape->length;
        weigh(shape, numbers, i, &row);
        blend(shape, numbers, i, &row);
        differentiate(shape, numbers, i, &row, problem, &sums);
    }
    round_sums(&problem->d_q, sums.d_q, count);
    round_sums(&problem->d_k, sums.d_k, count);
    round_sums(&problem->d_v, sums.d_v, count);
    free(row.weights);
    free(row.d_p);
    free(row.a);
    free(row.o);
}

void accuracy_gradient_make(struct accuracy_gradient_problem *problem,
                            const struct accuracy_gradient_shape *shape, uint64_t seed)
{
    uint64_t state = seed;
    int64_t length = shape->length, dim = shape->dim;
    *problem = (struct accuracy_gradient_problem){0};
    attn_params_init(&problem->params);
    problem->params.causal = shape->causal;
    struct numbers numbers;
    numbers.q = accuracy_fill(&problem->q, shape->type, length, dim, (double)shape->spread, &state);
    numbers.k = accuracy_fill(&problem->k, shape->type, length, dim, 1, &state);
    numbers.v = accuracy_fill(&problem->v, shape->type, length, dim, 1, &state);
    numbers.d_o = accuracy_fill(&problem->d_o, shape->type, length, dim, 1, &state);
    solve(shape, &numbers, problem);
    free(numbers.q);
    free(numbers.k);
    free(numbers.v);
    free(numbers.d_o);
}

static void release_gradient(const struct accuracy_gradient *gradient)
{
    free(gradient->right);
    free(gradient->size);
    free(gradient->law);
    free(gradient->of_o);
    free(gradient->tiny);
}

void accuracy_gradient_release(struct accuracy_gradient_problem *problem)
{
    release_gradient(&problem->d_q);
    release_gradient(&problem->d_k);
    release_gradient(&problem->d_v);
    free(problem->q.data);
    free(problem->k.data);
    free(problem->v.data);
    free(problem->d_o.data);
}
