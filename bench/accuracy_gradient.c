#include "accuracy_gradient.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "accuracy_gradient_problem.h"
#include "accuracy_problem.h"

/* |g − r| ≤ PROMISED·ε·law */
#define PROMISED 16.0

static const int64_t lengths[] = {128, 1024};
static const int64_t dims[] = {16, 64, 128};
static const float spreads[] = {0.1f, 1, 30, 1000};

/* What a call is given. */
struct path {
    const char *type_name;
    attn_type type, o_type;
    double o_roundoff; /* of o_type, where that is of 16 bits */
    attn_precision precision;
};

static const struct path paths[] = {
    {"f32", ATTN_F32, ATTN_F32, 0, ATTN_PRECISION_EXACT},
    {"f16", ATTN_F16, ATTN_F32, 0, ATTN_PRECISION_EXACT},
    {"bf16", ATTN_BF16, ATTN_F32, 0, ATTN_PRECISION_EXACT},
    {"f64", ATTN_F64, ATTN_F64, 0, ATTN_PRECISION_EXACT},
    {"f16", ATTN_F16, ATTN_F16, 0x1p-11, ATTN_PRECISION_EXACT},
    {"bf16", ATTN_BF16, ATTN_BF16, 0x1p-8, ATTN_PRECISION_EXACT},
    {"bf16", ATTN_BF16, ATTN_F32, 0, ATTN_PRECISION_BF16},
};

enum { GRADIENTS = 3, COUNT_OF_PATHS = sizeof paths / sizeof paths[0], MOST_ISAS = 8 };
static const char *const gradient_names[GRADIENTS] = {"dQ", "dK", "dV"};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The largest errors of one path and instruction set, for each gradient. */
struct worst {
    bool measured;
    double law[GRADIENTS];      /* |g − r| / (ε·law) */
    double short_o[GRADIENTS];  /* |g − r| / (PROMISED·ε·law + o's roundoff·of_o) */
    double bf16[GRADIENTS];     /* |g − r| / (PROMISED·ε·law + 2⁻⁷·size) */
    double relative[GRADIENTS]; /* ‖g − r‖ / ‖r‖, for scores of spread 1 */
};

struct measurements {
    attn_context *const *contexts;
    int count;
    struct worst worst[COUNT_OF_PATHS][MOST_ISAS];
};

static void fail(attn_context *context)
{
    fprintf(stderr, "accuracy: %s\n", attn_message(context));
    exit(1);
}

static double element(const attn_tensor *tensor, int64_t i)
{
    return tensor->type == ATTN_F64 ? ((const double *)tensor->data)[i]
                                    : (double)((const float *)tensor->data)[i];
}

static void record(const struct path *path, const struct accuracy_gradient_shape *shape,
                   const struct accuracy_gradient *gradient, const attn_tensor *actual,
                   struct worst *worst, int which)
{
    double roundoff = path->type == ATTN_F64 ? 0x1p-53 : 0x1p-24;
    double errors = 0, numbers = 0;
    for (int64_t i = 0; i < shape->length * shape->dim; i++) {
        double error = fabs(element(actual, i) - gradient->right[i]);
        if (!isfinite(error))
            error = INFINITY;
        errors += error * error;
        numbers += gradient->right[i] * gradient->right[i];
        if (error <= gradient->tiny[i])
            continue;
        double law = roundoff * gradient->law[i];
        worst->law[which] = fmax(worst->law[which], error / law);
        worst->short_o[which] = fmax(
            worst->short_o[which], error / (PROMISED * law + path->o_roundoff * gradient->of_o[i]));
        worst->bf16[which] =
            fmax(worst->bf16[which], error / (PROMISED * law + 0x1p-7 * gradient->size[i]));
    }
    if (shape->spread == 1)
        worst->relative[which] = fmax(worst->relative[which], sqrt(errors / numbers));
}

/* Whether the context would take the precision that the path asks for. */
static bool has_path(attn_context *context, const struct path *path,
                     const struct accuracy_gradient_problem *problem, const attn_tensor *o)
{
    if (path->precision == ATTN_PRECISION_EXACT)
        return true;
    attn_explanation explanation = {.size = sizeof explanation};
    attn_status status = attn_explain(context, ATTN_OPERATION_BACKWARD, &problem->params,
                                      &problem->q, &problem->k, &problem->v, o, &explanation);
    return status == ATTN_SUCCESS && explanation.precision == path->precision;
}

static void measure_path(struct measurements *all, int which, int isa,
                         const struct accuracy_gradient_shape *shape,
                         struct accuracy_gradient_problem *problem)
{
    const struct path *path = &paths[which];
    attn_context *context = all->contexts[isa];
    attn_type exact = path->type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    int64_t length = shape->length, dim = shape->dim;
    size_t count = (size_t)(length * dim);
    attn_tensor o = attn_tensor_packed(accuracy_allocate(count, sizeof(double)), path->o_type, 1, 1,
                                       length, dim);
    attn_tensor stats = attn_tensor_packed(accuracy_allocate((size_t)length * 2, sizeof(double)),
                                           exact, 1, 1, length, 2);
    attn_tensor made[GRADIENTS];
    for (int n = 0; n < GRADIENTS; n++)
        made[n] =
            attn_tensor_packed(accuracy_allocate(count, sizeof(double)), exact, 1, 1, length, dim);
    problem->params.precision = path->precision;
    if (has_path(context, path, problem, &problem->d_o)) {
        attn_gradients gradients;
        attn_gradients_init(&gradients);
        gradients.q = &made[0];
        gradients.k = &made[1];
        gradients.v = &made[2];
        if (attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v, &o,
                         &stats) ||
            attn_backward(context, &problem->params, &problem->q, &problem->k, &problem->v, &o,
                          &stats, &problem->d_o, &gradients))
            fail(context);
        const struct accuracy_gradient *const right[] = {&problem->d_q, &problem->d_k,
                                                         &problem->d_v};
        struct worst *worst = &all->worst[which][isa];
        worst->measured = true;
        for (int n = 0; n < GRADIENTS; n++)
            record(path, shape, right[n], &made[n], worst, n);
    }
    free(o.data);
    free(stats.data);
    for (int n = 0; n < GRADIENTS; n++)
        free(made[n].data);
}

/* One problem for all paths of its type. */
static void measure_shape(struct measurements *all, const struct accuracy_gradient_shape *shape)
{
    struct accuracy_gradient_problem problem;
    accuracy_gradient_make(&problem, shape, (uint64_t)(shape->length * 1000 + shape->dim));
    for (int which = 0; which < COUNT_OF_PATHS; which++)
        for (int isa = 0; paths[which].type == shape->type && isa < all->count; isa++)
            measure_path(all, which, isa, shape, &problem);
    accuracy_gradient_release(&problem);
}

/* Dense and causal in turn. */
static void measure_all(struct measurements *all)
{
    static const attn_type types[] = {ATTN_F32, ATTN_F16, ATTN_BF16, ATTN_F64};
    for (size_t a = 0; a < COUNT(lengths); a++)
        for (size_t b = 0; b < COUNT(dims); b++)
            for (size_t c = 0; c < COUNT(spreads); c++)
                for (size_t t = 0; t < COUNT(types); t++)
                    measure_shape(
                        all, &(struct accuracy_gradient_shape){lengths[a], dims[b], spreads[c],
                                                               (int)(a + b + c + t) % 2, types[t]});
}

static bool has_short_o(const struct path *path)
{
    return path->o_roundoff > 0;
}

static bool is_exact(const struct path *path)
{
    return path->precision == ATTN_PRECISION_EXACT && !has_short_o(path);
}

static void print_law(const struct measurements *all)
{
    printf("\n| gradient | q, k, v, d_o |");
    for (int isa = 0; isa < all->count; isa++)
        printf(" %s |", attn_isa_name(attn_context_isa(all->contexts[isa])));
    printf("\n| --- | --- |");
    for (int isa = 0; isa < all->count; isa++)
        printf(" --- |");
    printf("\n");
    for (int which = 0; which < COUNT_OF_PATHS; which++)
        for (int n = 0; is_exact(&paths[which]) && n < GRADIENTS; n++) {
            printf("| %s | %s |", gradient_names[n], paths[which].type_name);
            for (int isa = 0; isa < all->count; isa++)
                printf(" %.2f |", all->worst[which][isa].law[n]);
            printf("\n");
        }
}

static double worst_relative(const struct measurements *all, attn_type type, attn_type o_type,
                             int gradient)
{
    double worst = 0;
    for (int which = 0; which < COUNT_OF_PATHS; which++)
        for (int isa = 0; isa < all->count; isa++)
            if (paths[which].type == type && paths[which].o_type == o_type &&
                paths[which].precision == ATTN_PRECISION_EXACT)
                worst = fmax(worst, all->worst[which][isa].relative[gradient]);
    return worst;
}

static double worst_short_o(const struct measurements *all)
{
    double worst = 0;
    for (int which = 0; which < COUNT_OF_PATHS; which++)
        for (int isa = 0; isa < all->count; isa++)
            for (int n = 0; n < GRADIENTS; n++)
                if (has_short_o(&paths[which]))
                    worst = fmax(worst, all->worst[which][isa].short_o[n]);
    return worst;
}

static void print_short_o(const struct measurements *all)
{
    static const struct {
        const char *name;
        attn_type type;
    } types[] = {{"f16", ATTN_F16}, {"bf16", ATTN_BF16}};
    printf("\n| q, k, v, d_o | o | ‖dQ − r‖ / ‖r‖ | ‖dK − r‖ / ‖r‖ | ‖dV − r‖ / ‖r‖ |\n"
           "| --- | --- | --- | --- | --- |\n");
    for (size_t t = 0; t < COUNT(types); t++)
        for (int is_short = 0; is_short < 2; is_short++) {
            printf("| %s | %s |", types[t].name, is_short ? types[t].name : "f32");
            for (int n = 0; n < GRADIENTS; n++)
                printf(" %.1e |",
                       worst_relative(all, types[t].type, is_short ? types[t].type : ATTN_F32, n));
            printf("\n");
        }
}

/* The largest share of the bound with bf16 products; negative where nothing was measured. */
static double worst_bf16(const struct measurements *all)
{
    double worst = -1;
    for (int which = 0; which < COUNT_OF_PATHS; which++)
        for (int isa = 0; isa < all->count; isa++)
            for (int n = 0; n < GRADIENTS; n++)
                if (paths[which].precision == ATTN_PRECISION_BF16 &&
                    all->worst[which][isa].measured)
                    worst = fmax(worst, all->worst[which][isa].bf16[n]);
    return worst;
}

static double worst_law(const struct measurements *all)
{
    double worst = 0;
    for (int which = 0; which < COUNT_OF_PATHS; which++)
        for (int isa = 0; isa < all->count; isa++)
            for (int n = 0; n < GRADIENTS; n++)
                if (is_exact(&paths[which]))
                    worst = fmax(worst, all->worst[which][isa].law[n]);
    return worst;
}

static void print_section(const struct measurements *all)
{
    printf(
        "\n## Gradients\n\n"
        "For every element of a gradient of `attn_backward` with an o of f32 (f64), the sums being "
        "those that make the\nelement, over the keys of a query for dQ, over the queries of a key, of "
        "all heads of its group, for dK and dV:\n\n"
        "    |dV − r| ≤ %.0f·ε · Σ (1 + S)·p·|dO|\n"
        "    |dQ − r| ≤ %.0f·ε·|scale| · Σ (1 + S)·p·(A + Ā)·|k|\n"
        "    |dK − r| ≤ %.0f·ε·|scale| · Σ (1 + S)·p·(A + Ā)·|q|\n\n"
        "- A = Σ |dO·v| is the size of what makes dP of a pair, and Ā = Σ p·A, of its row, that of "
        "what makes D: dP − D may be\n"
        "  far smaller than either. S is that of the term's row.\n"
        "- The gradient of a bias keeps the law of its dS, %.0f·ε·Σ (1 + S)·p·(A + Ā), and that of a "
        "sink, with its own weight, too.\n"
        "- To this comes the rounding of a gradient of 16 bits. A weight below 2⁻¹²⁵ may count as 0.\n"
        "- The tests check all masks and options against a finer form of the same law; gradients of "
        "f64 agree with finite\n  differences within 10⁻⁸ of the largest element.\n\n"
        "The largest c measured, Lq = Lk = 128 and 1024, d = 16, 64 and 128, dense and causal in turn, "
        "scores of spread 0.1 to\n1000. Promised: %.0f.\n",
        PROMISED, PROMISED, PROMISED, PROMISED, PROMISED);
    print_law(all);
    printf(
        "\n### An o of 16 bits\n\n"
        "D = rowsum(dO∘O) then has the rounding of o, u = 2⁻¹¹ (f16) or 2⁻⁸ (bf16), and all dS of a row "
        "are off by the same\nshare of their weights. To the bounds of dQ and dK comes\n\n"
        "    u·|scale| · Σ p·B·|k|  (dQ)        u·|scale| · Σ p·B·|q|  (dK)        B = Σ |dO·o| of the "
        "row\n\n"
        "and to that of dV nothing. Errors were at most %.2f of the whole bound. What it costs for "
        "scores of spread 1, in the\nnorm of a gradient that is asked for in f32:\n",
        worst_short_o(all));
    print_short_o(all);
    printf(
        "\n### `precision` bf16\n\n"
        "Where bf16 products are used, weights and dS are rounded to bf16 before their products, and "
        "the weights of the\nforward pass were too. To each bound comes 2⁻⁷ times its sum without ε and "
        "(1 + S).\n");
    double worst = worst_bf16(all);
    if (worst < 0)
        printf(
            "None of the instruction sets above has these products: this was not measured in this "
            "run.\n");
    else
        printf("Errors were at most %.2f of the whole bound.\n", worst);
}

bool accuracy_print_gradients(attn_context *const *contexts, int count)
{
    struct measurements all = {.contexts = contexts,
                               .count = count < MOST_ISAS ? count : MOST_ISAS};
    measure_all(&all);
    print_section(&all);
    return worst_law(&all) <= PROMISED && worst_short_o(&all) <= 1 && worst_bf16(&all) <= 1;
}
