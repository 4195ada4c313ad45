#include "attention/inspection.h"

#include <inttypes.h>

#include "attention/overlap.h"
#include "attention/tensor_check.h"
#include "attention/tensor_extent.h"

/* An output of the inspection on its way through the checks. */
struct output {
    const char *name;
    const attn_tensor *given; /* NULL: not wanted */
    attn_tensor *resolved;
    unsigned types;
    int64_t shape[4];
};

enum { OUTPUTS = 5 };

static attn_status check_top(const struct attn_problem *problem, const attn_inspection *inspection,
                             struct attn_error *error)
{
    RETURN_IF(!inspection->top_weights != !inspection->top_keys, error, ATTN_ERROR_ARGUMENT,
              "inspection.%s is NULL, expected both top_weights and top_keys or neither",
              inspection->top_weights ? "top_keys" : "top_weights");
    if (!inspection->top_weights)
        return ATTN_SUCCESS;
    int64_t count = inspection->top_weights->shape[3];
    RETURN_IF(count < 1 || count > ATTN_TOP_LIMIT, error, ATTN_ERROR_SHAPE,
              "inspection.top_weights wants %" PRId64 " weights of a row, expected 1 to %d", count,
              ATTN_TOP_LIMIT);
    RETURN_IF(problem->keys > INT32_MAX, error, ATTN_ERROR_SHAPE,
              "k has %" PRId64 " keys, expected at most %" PRId32
              " with inspection.top_keys, which is i32",
              problem->keys, INT32_MAX);
    return ATTN_SUCCESS;
}

static attn_status check_sums(const struct attn_problem *problem, const attn_inspection *inspection,
                              struct attn_error *error)
{
    RETURN_IF(inspection->query_begin < 0 || inspection->query_begin > inspection->query_end, error,
              ATTN_ERROR_ARGUMENT,
              "inspection.query_begin is %" PRId64 ", expected 0 to query_end, which is %" PRId64,
              inspection->query_begin, inspection->query_end);
    RETURN_IF(
        inspection->key_sums && !attn_has_key_sums(problem), error, ATTN_ERROR_UNSUPPORTED,
        "inspection.key_sums is given, expected NULL with packed sequences and a block table: "
        "a key has no place in the tensors");
    return ATTN_SUCCESS;
}

static attn_status check_apart(const struct output *output, const attn_tensor *other,
                               const char *other_name, struct attn_error *error)
{
    RETURN_IF(other && attn_overlap(output->given, other), error, ATTN_ERROR_OVERLAP,
              "%s and %s share memory, expected an output apart from all other tensors",
              output->name, other_name);
    return ATTN_SUCCESS;
}

static attn_status resolve_output(const struct attn_problem *problem, const struct output *output,
                                  const attn_tensor *o, const attn_tensor *stats, bool reads_v,
                                  struct attn_error *error)
{
    attn_status status = attn_check_tensor(output->given, output->name, output->types, error);
    if (!status)
        status = attn_check_shape(output->given, output->name, output->shape, error);
    if (!status)
        status = attn_check_output(problem, output->given, output->name, reads_v, error);
    if (!status)
        status = check_apart(output, o, "o", error);
    if (!status)
        status = check_apart(output, stats, "stats", error);
    if (!status)
        *output->resolved = attn_without_offsets(output->given);
    return status;
}

static int64_t cut_off(int64_t row, int64_t rows)
{
    return row < rows ? row : rows;
}

attn_status attn_inspected_resolve(struct attn_inspected *inspected,
                                   const struct attn_problem *problem,
                                   const attn_inspection *inspection, const attn_tensor *o,
                                   const attn_tensor *stats, bool reads_v, struct attn_error *error)
{
    RETURN_IF(!inspection, error, ATTN_ERROR_ARGUMENT,
              "inspection is NULL, expected what is wanted: start from attn_inspection_init");
    RETURN_IF(inspection->size != sizeof *inspection, error, ATTN_ERROR_ARGUMENT,
              "inspection.size is %zu, expected %zu: start from attn_inspection_init",
              inspection->size, sizeof *inspection);
    attn_status status = check_top(problem, inspection, error);
    if (!status)
        status = check_sums(problem, inspection, error);
    if (status)
        return status;

    *inspected = (struct attn_inspected){
        .wants_top = inspection->top_weights,
        .wants_entropy = inspection->entropy,
        .wants_maximum = inspection->maximum,
        .wants_key_sums = inspection->key_sums,
        .top = inspection->top_weights ? inspection->top_weights->shape[3] : !!inspection->maximum,
        .query_begin = cut_off(inspection->query_begin, problem->queries),
        .query_end = cut_off(inspection->query_end, problem->queries),
    };
    const unsigned numbers =
        problem->q.type == ATTN_F64 ? (unsigned)ATTN_TYPES_F64 : (unsigned)ATTN_TYPES_F32;
    const int64_t batch = problem->batch, heads = problem->heads, rows = problem->queries;
    const struct output outputs[OUTPUTS] = {
        {"inspection.top_weights",
         inspection->top_weights,
         &inspected->top_weights,
         numbers,
         {batch, heads, rows, inspected->top}},
        {"inspection.top_keys",
         inspection->top_keys,
         &inspected->top_keys,
         ATTN_TYPES_I32,
         {batch, heads, rows, inspected->top}},
        {"inspection.entropy",
         inspection->entropy,
         &inspected->entropy,
         numbers,
         {batch, heads, rows, 1}},
        {"inspection.maximum",
         inspection->maximum,
         &inspected->maximum,
         numbers,
         {batch, heads, rows, 1}},
        {"inspection.key_sums",
         inspection->key_sums,
         &inspected->key_sums,
         numbers,
         {batch, heads, problem->keys, 1}},
    };
    for (int n = 0; n < OUTPUTS && !status; n++) {
        if (!outputs[n].given)
            continue;
        status = resolve_output(problem, &outputs[n], o, stats, reads_v, error);
        for (int other = 0; other < n && !status; other++)
            status = check_apart(&outputs[n], outputs[other].given, outputs[other].name, error);
    }
    return status;
}

void attn_inspected_clear_sums(const struct attn_inspected *inspected)
{
    const attn_tensor *sums = &inspected->key_sums;
    for (int64_t b = 0; inspected->wants_key_sums && b < sums->shape[0]; b++)
        for (int64_t h = 0; h < sums->shape[1]; h++)
            for (int64_t key = 0; key < sums->shape[2]; key++)
                if (sums->type == ATTN_F64)
                    *attn_double_element(sums, b, h, key, 0) = 0.0;
                else
                    *attn_element(sums, b, h, key, 0) = 0.0f;
}

void attn_inspected_all(struct attn_inspected *inspected, const struct attn_problem *problem)
{
    *inspected = (struct attn_inspected){.wants_top = true,
                                         .wants_entropy = true,
                                         .wants_maximum = true,
                                         .wants_key_sums = attn_has_key_sums(problem),
                                         .top = 8,
                                         .query_end = problem->queries};
}
