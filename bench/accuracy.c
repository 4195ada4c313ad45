/* Measures the error of every instruction set that runs here and prints docs/accuracy.md. Ends with
 * status 1 where a result is further off than that file promises.
 *
 *     accuracy >docs/accuracy.md */
#include "accuracy_problem.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy_gradient.h"

/* |o − r| ≤ PROMISED·ε·(1 + S)·Σ p|v| */
#define PROMISED 16.0

static const double bf16_roundoff = 0x1p-8;

static const int64_t key_counts[] = {128, 1024, 8192};
static const int64_t dims[] = {16, 64, 128, 256};
static const float spreads[] = {0.1f, 1, 30, 1000};

/* A way through the library. */
struct path {
    const char *name, *type_name;
    attn_type type;
    bool decode;
    attn_precision precision;
};

static const struct path paths[] = {
    {"attn_forward", "f32", ATTN_F32, false, ATTN_PRECISION_EXACT},
    {"attn_forward", "f16", ATTN_F16, false, ATTN_PRECISION_EXACT},
    {"attn_forward", "bf16", ATTN_BF16, false, ATTN_PRECISION_EXACT},
    {"attn_forward", "i8, q f32", ATTN_I8, false, ATTN_PRECISION_EXACT},
    {"attn_decode", "f32", ATTN_F32, true, ATTN_PRECISION_EXACT},
    {"attn_decode", "f16", ATTN_F16, true, ATTN_PRECISION_EXACT},
    {"attn_decode", "bf16", ATTN_BF16, true, ATTN_PRECISION_EXACT},
    {"attn_decode", "i8, q f32", ATTN_I8, true, ATTN_PRECISION_EXACT},
    {"attn_forward", "f64", ATTN_F64, false, ATTN_PRECISION_EXACT},
    {"attn_decode", "f64", ATTN_F64, true, ATTN_PRECISION_EXACT},
    {"attn_forward", "bf16, precision bf16", ATTN_BF16, false, ATTN_PRECISION_BF16},
};

enum { COUNT_OF_PATHS = sizeof paths / sizeof paths[0], MOST_ISAS = 8 };
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The largest errors of one call. */
struct measurement {
    attn_isa isa;
    const struct path *path;
    struct accuracy_shape shape;
    double magnitude; /* the largest S */
    double plain;     /* |o − r| / (ε·Σ p|v|) */
    double law;       /* |o − r| / (ε·(1 + S)·Σ p|v|) */
};

static struct measurement *measurements;
static size_t measured, capacity;

/* Contexts of one thread, one for each instruction set that runs here. */
static attn_context *contexts[MOST_ISAS];
static int context_count;

static void open_contexts(void)
{
    for (int value = 0; value < ATTN_ISA_BEST && context_count < MOST_ISAS; value++) {
        if (strcmp(attn_isa_name((attn_isa)value), "unknown") == 0)
            continue;
        attn_options options;
        attn_options_init(&options);
        options.isa = (attn_isa)value;
        options.threads = 1;
        attn_context *context;
        if (attn_context_create(&context, &options) != ATTN_SUCCESS) {
            fprintf(stderr, "accuracy: no context for %s\n", attn_isa_name((attn_isa)value));
            exit(1);
        }
        if (attn_context_isa(context) == (attn_isa)value)
            contexts[context_count++] = context;
        else
            attn_context_destroy(context);
    }
}

/* Whether the context would take the precision that the path asks for. */
static bool has_path(attn_context *context, const struct path *path,
                     const struct accuracy_problem *problem, const attn_tensor *o)
{
    if (path->precision == ATTN_PRECISION_EXACT)
        return true;
    attn_explanation explanation = {.size = sizeof explanation};
    attn_status status = attn_explain(context, ATTN_OPERATION_FORWARD, &problem->params,
                                      &problem->q, &problem->k, &problem->v, o, &explanation);
    return status == ATTN_SUCCESS && explanation.precision == path->precision;
}

static double output_at(const attn_tensor *o, int64_t i)
{
    return o->type == ATTN_F64 ? ((const double *)o->data)[i] : (double)((const float *)o->data)[i];
}

static void record(attn_context *context, const struct path *path,
                   const struct accuracy_shape *shape, const struct accuracy_problem *problem,
                   const attn_tensor *o)
{
    if (measured == capacity) {
        capacity = 2 * capacity + 64;
        measurements = realloc(measurements, capacity * sizeof *measurements);
        if (!measurements)
            exit(1);
    }
    struct measurement result = {.isa = attn_context_isa(context), .path = path, .shape = *shape};
    double roundoff = path->type == ATTN_F64 ? 0x1p-53 : 0x1p-24;
    for (int64_t row = 0; row < ACCURACY_QUERIES; row++) {
        double magnitude = problem->magnitude[row];
        result.magnitude = fmax(result.magnitude, magnitude);
        for (int64_t i = row * shape->dim; i < (row + 1) * shape->dim; i++) {
            double error = fabs(output_at(o, i) - problem->o[i]);
            if (error <= problem->tiny[i])
                continue;
            error /= roundoff * problem->size[i];
            if (!isfinite(error))
                error = INFINITY;
            result.plain = fmax(result.plain, error);
            result.law = fmax(result.law, error / (1 + magnitude));
        }
    }
    measurements[measured++] = result;
}

static void measure_path(const struct path *path, const struct accuracy_shape *shape,
                         struct accuracy_problem *problem)
{
    attn_type type = path->type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    void *data = accuracy_allocate((size_t)(ACCURACY_QUERIES * shape->dim), sizeof(double));
    attn_tensor o = attn_tensor_packed(data, type, 1, 1, ACCURACY_QUERIES, shape->dim);
    problem->params.precision = path->precision;
    for (int n = 0; n < context_count; n++) {
        if (!has_path(contexts[n], path, problem, &o))
            continue;
        attn_status status = (path->decode ? attn_decode : attn_forward)(
            contexts[n], &problem->params, &problem->q, &problem->k, &problem->v, &o, NULL);
        if (status != ATTN_SUCCESS) {
            fprintf(stderr, "accuracy: %s: %s\n", path->name, attn_message(contexts[n]));
            exit(1);
        }
        record(contexts[n], path, shape, problem, &o);
    }
    free(data);
}

/* One problem for all paths of its type. */
static void measure_shape(const struct accuracy_shape *shape)
{
    struct accuracy_problem problem;
    accuracy_make(&problem, shape, (uint64_t)(shape->keys * 1000 + shape->dim));
    for (int n = 0; n < COUNT_OF_PATHS; n++)
        if (paths[n].type == shape->type)
            measure_path(&paths[n], shape, &problem);
    accuracy_release(&problem);
}

/* Dense and causal in turn. */
static void measure_all(void)
{
    static const attn_type types[] = {ATTN_F32, ATTN_F16, ATTN_BF16, ATTN_I8, ATTN_F64};
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(dims); b++)
            for (size_t c = 0; c < COUNT(spreads); c++)
                for (size_t t = 0; t < COUNT(types); t++)
                    measure_shape(&(struct accuracy_shape){key_counts[a], dims[b], spreads[c],
                                                           (int)(a + b + c + t) % 2, types[t]});
}

/* What a line of a table is about; 0, NULL and −1 are anything. */
struct filter {
    int isa;
    const struct path *path;
    int64_t keys, dim;
    float spread;
};

static const struct filter everything = {.isa = -1};

static bool fits(const struct measurement *m, const struct filter *filter)
{
    return (filter->isa < 0 || (int)m->isa == filter->isa) &&
           (filter->path ? m->path == filter->path : m->path->precision == ATTN_PRECISION_EXACT) &&
           (filter->keys == 0 || m->shape.keys == filter->keys) &&
           (filter->dim == 0 || m->shape.dim == filter->dim) &&
           (filter->spread == 0 || m->shape.spread == filter->spread);
}

/* The largest of each figure; law is negative where nothing was measured. */
static struct measurement worst_of(const struct filter *filter)
{
    struct measurement worst = {.law = -1};
    for (size_t n = 0; n < measured; n++) {
        if (!fits(&measurements[n], filter))
            continue;
        worst.law = fmax(worst.law, measurements[n].law);
        worst.plain = fmax(worst.plain, measurements[n].plain);
        worst.magnitude = fmax(worst.magnitude, measurements[n].magnitude);
    }
    return worst;
}

static void print_paths(void)
{
    printf("\n| call | q, k, v |");
    for (int n = 0; n < context_count; n++)
        printf(" %s |", attn_isa_name(attn_context_isa(contexts[n])));
    printf("\n| --- | --- |");
    for (int n = 0; n < context_count; n++)
        printf(" --- |");
    printf("\n");
    for (int i = 0; i < COUNT_OF_PATHS; i++) {
        if (paths[i].precision != ATTN_PRECISION_EXACT)
            continue;
        printf("| `%s` | %s |", paths[i].name, paths[i].type_name);
        for (int n = 0; n < context_count; n++) {
            struct filter filter = everything;
            filter.path = &paths[i];
            filter.isa = (int)attn_context_isa(contexts[n]);
            printf(" %.2f |", worst_of(&filter).law);
        }
        printf("\n");
    }
}

static void print_spreads(void)
{
    printf("\n| scores' spread | largest S | without (1 + S) | c |\n| --- | --- | --- | --- |\n");
    for (size_t n = 0; n < COUNT(spreads); n++) {
        struct filter filter = everything;
        filter.spread = spreads[n];
        struct measurement worst = worst_of(&filter);
        printf("| %g | %.3g | %.3g | %.2f |\n", (double)spreads[n], worst.magnitude, worst.plain,
               worst.law);
    }
}

static void print_sizes(void)
{
    printf("\n| Lk |");
    for (size_t b = 0; b < COUNT(dims); b++)
        printf(" d = %d |", (int)dims[b]);
    printf("\n| --- |");
    for (size_t b = 0; b < COUNT(dims); b++)
        printf(" --- |");
    printf("\n");
    for (size_t a = 0; a < COUNT(key_counts); a++) {
        printf("| %d |", (int)key_counts[a]);
        for (size_t b = 0; b < COUNT(dims); b++) {
            struct filter filter = everything;
            filter.keys = key_counts[a];
            filter.dim = dims[b];
            printf(" %.2f |", worst_of(&filter).law);
        }
        printf("\n");
    }
}

/* In units of 2⁻⁸·Σ p|v|, as the rest of that bound is small beside it unless scores are large. */
static double worst_of_bf16(void)
{
    double worst = -1;
    for (size_t n = 0; n < measured; n++) {
        const struct measurement *m = &measurements[n];
        if (m->path->precision == ATTN_PRECISION_BF16 && m->shape.spread <= 1)
            worst = fmax(worst, m->plain * 0x1p-24 / bf16_roundoff);
    }
    return worst;
}

static bool bf16_is_kept(void)
{
    for (size_t n = 0; n < measured; n++) {
        const struct measurement *m = &measurements[n];
        double allowed = PROMISED * (1 + m->magnitude) + bf16_roundoff / 0x1p-24;
        if (m->path->precision == ATTN_PRECISION_BF16 && !(m->plain <= allowed))
            return false;
    }
    return true;
}

static void print_bf16(void)
{
    printf(
        "\n## `precision` bf16\n\n"
        "Where `attn_explain` tells that bf16 products are used, weights are rounded to bf16 before "
        "they meet V, and the bound is\n\n"
        "    |o − r| ≤ (2⁻⁸ + %.0f·ε·(1 + S)) · Σ p·|v|\n\n"
        "Products of two bf16 numbers are exact in f32, and AVX512_BF16 and AMX-BF16 both add them in "
        "f32, to nearest even and with\nsubnormal numbers as 0. So scores and statistics keep the "
        "bound from above with either; l is the sum of the weights before\nthey are rounded. ",
        PROMISED);
    double worst = worst_of_bf16();
    if (worst < 0)
        printf(
            "None of the instruction sets above has these products: the bound was not measured in "
            "this run.\n");
    else
        printf("Measured: at most %.2f · 2⁻⁸ · Σ p·|v| for scores of spread 1.\n", worst);
}

static void print_document(void)
{
    printf(
        "# Accuracy\n\n"
        "<!-- Printed by `make accuracy >docs/accuracy.md`. -->\n\n"
        "For every element o of an output, r being the definition's value for the numbers that the "
        "tensors store:\n\n"
        "    |o − r| ≤ %.0f·ε·(1 + S) · Σ p·|v|        ε = 2⁻²⁴ (f64 tensors: 2⁻⁵³)\n\n"
        "- Σ p·|v| is the sum that makes the element, with every value positive: for values of one "
        "sign it is |r|.\n"
        "- S says how large the row's scores are: the largest, over its kept keys, of the sum of sizes of "
        "all terms of a score,\n"
        "  `Σ |scale·q·k| + |bias| + |slope·distance|`, and a callback's result where it changes a "
        "score. A score is rounded in\n"
        "  proportion to its terms, and exp turns an error of the score into as large a relative "
        "error of its weight. So S\n"
        "  belongs to any bound: no f32 computation has one without it. For q and k of unit spread S is "
        "about √d.\n"
        "- To this comes the rounding of o itself where it is f16 (2⁻¹¹·|r|) or bf16 (2⁻⁸·|r|).\n"
        "- A weight below 2⁻¹²⁵ may count as 0, which takes at most 2⁻¹²⁵·Σ |v| away.\n"
        "- Statistics and weights keep the same law: m is off by at most %.0f·ε·S, l and each number of "
        "`attn_weights` by the\n"
        "  factor 1 ± %.0f·ε·(1 + S). A sink's logit counts as a score.\n\n"
        "The bound is a measured one, rounded up: it held in all cases below, with Lk up to %d and d up to "
        "%d, for numbers of\nnormal distribution. A proof must assume that all roundings fall to the "
        "same side; it gives a c that grows as d + Lk.\n"
        "The tests check each element against a finer form of the same law, in which every key has an S "
        "of its own.\n\n"
        "exp itself is off by at most 2 ULP, for every float of [−87.33, 0] and each instruction set: "
        "`make check-exp`.\n\n"
        "## Measured\n\n"
        "The largest c = |o − r| / (ε·(1 + S)·Σ p·|v|), attn %s; dense and causal in turn, Lk = 128, 1024 "
        "and 8192, d = 16, 64, 128\nand 256, scores of spread 0.1 to 1000. Promised: %.0f. An instruction "
        "set that is not listed was not there.\n",
        PROMISED, PROMISED, PROMISED, (int)key_counts[COUNT(key_counts) - 1],
        (int)dims[COUNT(dims) - 1], attn_version(), PROMISED);
    print_paths();
    printf("\nWhat (1 + S) is for: the same errors with it and without, all calls and types.\n");
    print_spreads();
    printf("\nc by size, all calls and types.\n");
    print_sizes();
    print_bf16();
}

int main(void)
{
    open_contexts();
    measure_all();
    print_document();
    bool kept = worst_of(&everything).law <= PROMISED && bf16_is_kept();
    kept &= accuracy_print_gradients(contexts, context_count);
    if (!kept)
        fprintf(stderr, "accuracy: an error is larger than what is promised\n");
    for (int n = 0; n < context_count; n++)
        attn_context_destroy(contexts[n]);
    free(measurements);
    return kept ? 0 : 1;
}
