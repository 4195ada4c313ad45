#include "attention/problem_places.h"

#include <inttypes.h>

#include "base/checked.h"

attn_status attn_problem_resolve_positions(struct attn_problem *problem, const attn_params *params,
                                           struct attn_error *error)
{
    RETURN_IF(params->alignment != ATTN_ALIGN_TOP_LEFT &&
                  params->alignment != ATTN_ALIGN_BOTTOM_RIGHT &&
                  params->alignment != ATTN_ALIGN_OFFSET,
              error, ATTN_ERROR_ARGUMENT,
              "params.alignment is %d, expected a value of attn_alignment", (int)params->alignment);
    problem->alignment = params->alignment;
    problem->offset = params->alignment == ATTN_ALIGN_OFFSET ? params->offset : 0;
    RETURN_IF(problem->offset < -ATTN_POSITION_LIMIT || problem->offset > ATTN_POSITION_LIMIT,
              error, ATTN_ERROR_ARGUMENT,
              "params.offset is %" PRId64 ", expected at most ATTN_POSITION_LIMIT either way",
              problem->offset);
    RETURN_IF(problem->queries > ATTN_POSITION_LIMIT || problem->keys > ATTN_POSITION_LIMIT, error,
              ATTN_ERROR_SHAPE,
              "q has length %" PRId64 " and k %" PRId64 ", expected at most ATTN_POSITION_LIMIT",
              problem->queries, problem->keys);

    const int64_t sides[2] = {params->window_left, params->window_right};
    const char *const names[2] = {"left", "right"};
    for (int side = 0; side < 2; side++)
        RETURN_IF(sides[side] != ATTN_WINDOW_OPEN &&
                      (sides[side] < -ATTN_POSITION_LIMIT || sides[side] > ATTN_POSITION_LIMIT),
                  error, ATTN_ERROR_ARGUMENT,
                  "params.window_%s is %" PRId64
                  ", expected ATTN_WINDOW_OPEN or at most ATTN_POSITION_LIMIT either way",
                  names[side], sides[side]);
    problem->reach_left = params->window_left;
    problem->reach_right = params->window_right;
    if (params->causal && problem->reach_right > 0)
        problem->reach_right = 0;
    return ATTN_SUCCESS;
}

/* starts[count + 1]: from 0, not falling, at most `length`. */
static attn_status check_starts(const int64_t *starts, const char *name, int64_t count,
                                int64_t length, struct attn_error *error)
{
    RETURN_IF(!starts, error, ATTN_ERROR_ARGUMENT,
              "params.%s is NULL, expected params.sequences + 1 numbers", name);
    RETURN_IF(starts[0] != 0, error, ATTN_ERROR_ARGUMENT, "params.%s[0] is %" PRId64 ", expected 0",
              name, starts[0]);
    for (int64_t s = 0; s < count; s++)
        RETURN_IF(starts[s + 1] < starts[s] || starts[s + 1] > length, error, ATTN_ERROR_ARGUMENT,
                  "params.%s[%" PRId64 "] is %" PRId64 ", expected %" PRId64 " to %" PRId64, name,
                  s + 1, starts[s + 1], starts[s], length);
    return ATTN_SUCCESS;
}

attn_status attn_problem_resolve_sequences(struct attn_problem *problem, const attn_params *params,
                                           struct attn_error *error)
{
    problem->sequences = problem->batch;
    RETURN_IF(params->sequences < 0, error, ATTN_ERROR_ARGUMENT,
              "params.sequences is %" PRId64 ", expected at least 0", params->sequences);
    if (params->sequences > 0) {
        RETURN_IF(problem->batch != 1, error, ATTN_ERROR_SHAPE,
                  "q has batch %" PRId64 ", expected 1 where sequences are packed", problem->batch);
        RETURN_IF(problem->block_table && params->key_starts, error, ATTN_ERROR_ARGUMENT,
                  "params.key_starts and params.block_table are given, expected one of them");
        attn_status status = check_starts(params->query_starts, "query_starts", params->sequences,
                                          problem->queries, error);
        if (!status && !problem->block_table)
            status = check_starts(params->key_starts, "key_starts", params->sequences,
                                  problem->keys, error);
        if (status)
            return status;
        problem->sequences = params->sequences;
        problem->query_starts = params->query_starts;
        problem->key_starts = params->key_starts;
    }

    problem->key_lengths = params->key_lengths;
    for (int64_t s = 0; params->key_lengths && s < problem->sequences; s++) {
        int64_t keys = problem->key_starts ? problem->key_starts[s + 1] - problem->key_starts[s]
                                           : problem->keys;
        RETURN_IF(params->key_lengths[s] < 0 || params->key_lengths[s] > keys, error,
                  ATTN_ERROR_ARGUMENT,
                  "params.key_lengths[%" PRId64 "] is %" PRId64 ", expected 0 to %" PRId64, s,
                  params->key_lengths[s], keys);
    }
    problem->prefix_lengths = params->prefix_lengths;
    for (int64_t s = 0; params->prefix_lengths && s < problem->sequences; s++)
        RETURN_IF(params->prefix_lengths[s] < 0, error, ATTN_ERROR_ARGUMENT,
                  "params.prefix_lengths[%" PRId64 "] is %" PRId64 ", expected at least 0", s,
                  params->prefix_lengths[s]);
    RETURN_IF(!params->query_documents != !params->key_documents, error, ATTN_ERROR_ARGUMENT,
              "params.%s_documents is NULL, expected both or neither of query_documents and "
              "key_documents",
              params->query_documents ? "key" : "query");
    RETURN_IF(params->key_documents && problem->block_table && params->sequences > 0, error,
              ATTN_ERROR_UNSUPPORTED,
              "params.key_documents with packed sequences and a block table: the keys of a "
              "sequence have no row of their own, expected one of them left out");
    problem->query_documents = params->query_documents;
    problem->key_documents = params->key_documents;
    return ATTN_SUCCESS;
}

/* Pages: Lk, and that each entry that will be read names one. */
attn_status attn_problem_resolve_pages(struct attn_problem *problem, const attn_params *params,
                                       struct attn_error *error)
{
    if (!params->block_table)
        return ATTN_SUCCESS;
    RETURN_IF(!params->key_lengths, error, ATTN_ERROR_ARGUMENT,
              "params.key_lengths is NULL, expected the lengths of all sequences with a block "
              "table");
    int64_t keys;
    RETURN_IF(params->block_table_width < 0 ||
                  !attn_checked_multiply(params->block_table_width, problem->k.shape[2], &keys),
              error, ATTN_ERROR_ARGUMENT,
              "params.block_table_width is %" PRId64 ", expected the entries a sequence, at "
              "least 0 and not more than INT64_MAX keys",
              params->block_table_width);
    problem->block_table = params->block_table;
    problem->block_table_width = params->block_table_width;
    problem->page_length = problem->k.shape[2];
    problem->keys = keys;
    return ATTN_SUCCESS;
}

attn_status attn_problem_check_pages(const struct attn_problem *problem, struct attn_error *error)
{
    if (!problem->block_table)
        return ATTN_SUCCESS;
    for (int64_t s = 0; s < problem->sequences; s++)
        for (int64_t n = 0; n * problem->page_length < problem->key_lengths[s]; n++) {
            int64_t page = problem->block_table[s * problem->block_table_width + n];
            RETURN_IF(page < 0 || page >= problem->k.shape[0], error, ATTN_ERROR_ARGUMENT,
                      "params.block_table names page %" PRId64 " for entry %" PRId64
                      " of sequence %" PRId64 ", expected 0 to %" PRId64,
                      page, n, s, problem->k.shape[0] - 1);
        }
    return ATTN_SUCCESS;
}
