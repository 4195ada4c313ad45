/* The weights that a forward pass used, rebuilt from its row statistics: any part of them. */
#include "attn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attention/overlap.h"
#include "attention/panel.h"
#include "base/checked.h"
#include "base/parallel.h"

struct rebuild {
    const struct attn_problem *problem;
    const struct attn_kernels *kernels;
    const attn_tensor *stats, *weights;
    int64_t begin[4]; /* batch, head, query, key */
    int64_t panels_a_head;
    char *workspace;
    int64_t bytes_a_thread;
};

/* One thread's memory: fixed parts first. */
struct scratch {
    float scores[ATTN_KEY_BLOCK * ATTN_MAX_LANES];
    float m[ATTN_MAX_LANES], l[ATTN_MAX_LANES], unused_maximum[ATTN_MAX_LANES];
};

static bool scratch_bytes(const struct rebuild *run, int64_t *bytes)
{
    int64_t queries, keys;
    const int64_t d = run->problem->d_qk;
    return attn_checked_multiply(d, run->kernels->lanes * (int64_t)sizeof(float), &queries) &&
           attn_checked_multiply(d, ATTN_KEY_BLOCK * (int64_t)sizeof(float), &keys) &&
           attn_checked_add((int64_t)sizeof(struct scratch), queries, bytes) &&
           attn_checked_add(*bytes, keys, bytes) &&
           attn_checked_add(*bytes, ATTN_ALIGNMENT - 1, bytes);
}

/* Weights of keys begin..end−1 of the tensor, for one panel, into the output's place for them. */
static void write_zeros(const struct rebuild *run, float *row, int64_t rows, int64_t begin,
                        int64_t end)
{
    for (int64_t n = 0; n < rows; n++)
        for (int64_t j = begin; j < end; j++)
            row[n * run->weights->stride[2] + (j - run->begin[3]) * run->weights->stride[3]] = 0.0f;
}

static void rebuild_panel(void *user, int64_t item, int thread)
{
    const struct rebuild *run = user;
    const struct attn_problem *problem = run->problem;
    const struct attn_kernels *kernels = run->kernels;
    const attn_tensor *weights = run->weights;
    int64_t lanes = kernels->lanes;

    char *memory = run->workspace + thread * run->bytes_a_thread;
    struct scratch *scratch = (struct scratch *)(void *)memory;
    float *queries = (float *)(void *)(memory + sizeof *scratch);
    float *key_rows = queries + problem->d_qk * lanes;

    int64_t panel = item % run->panels_a_head;
    int64_t out_head = item / run->panels_a_head % weights->shape[1];
    int64_t out_batch = item / run->panels_a_head / weights->shape[1];
    int64_t batch = run->begin[0] + out_batch, head = run->begin[1] + out_head;
    int64_t out_query = panel * lanes, query = run->begin[2] + out_query;
    int64_t rows = weights->shape[2] - out_query < lanes ? weights->shape[2] - out_query : lanes;
    float *out = attn_element(weights, out_batch, out_head, out_query, 0);

    kernels->pack_queries(attn_element(&problem->q, batch, head, query, 0), problem->q.stride[2],
                          problem->q.stride[3], rows, problem->d_qk, queries);
    for (int n = 0; n < ATTN_MAX_LANES; n++) {
        scratch->m[n] = n < rows ? *attn_element(run->stats, batch, head, query + n, 0) : 0.0f;
        scratch->l[n] = n < rows ? *attn_element(run->stats, batch, head, query + n, 1) : 0.0f;
        scratch->unused_maximum[n] = -INFINITY;
    }

    int64_t wanted_begin = run->begin[3], wanted_end = run->begin[3] + weights->shape[3];
    struct attn_key_range kept = attn_keys_of_rows(problem, batch, query, rows);
    int64_t begin = kept.begin > wanted_begin ? kept.begin : wanted_begin;
    int64_t end = kept.end < wanted_end ? kept.end : wanted_end;
    if (begin >= end)
        begin = end = wanted_end;
    write_zeros(run, out, rows, wanted_begin, begin);
    write_zeros(run, out, rows, end, wanted_end);
    for (int64_t key = begin; key < end; key += ATTN_KEY_BLOCK) {
        int64_t keys = end - key < ATTN_KEY_BLOCK ? end - key : ATTN_KEY_BLOCK;
        struct attn_tile tile = {batch, head, query, key, rows, keys, kernels->lanes};
        struct attn_rows rows_of_k = attn_side_by_side(
            &problem->k, batch, attn_key_head(problem, head), key, keys, key_rows);
        attn_tile_scores(kernels, problem, &tile, queries, rows_of_k, scratch->scores,
                         scratch->unused_maximum);
        kernels->weights(scratch->scores, keys, scratch->m, scratch->l);
        kernels->unpack_output(scratch->scores, keys,
                               out + (key - wanted_begin) * weights->stride[3], weights->stride[2],
                               weights->stride[3], rows);
    }
}

/* Checks stats, the wanted part and the output. */
static attn_status resolve_part(struct rebuild *run, const attn_tensor *stats,
                                const int64_t begin[4], const attn_tensor *weights,
                                struct attn_error *error)
{
    const struct attn_problem *problem = run->problem;
    attn_status status = attn_check_tensor(stats, "stats", ATTN_F32, error);
    if (status)
        return status;
    const int64_t stats_shape[4] = {problem->batch, problem->heads, problem->queries, 2};
    status = attn_check_shape(stats, "stats", stats_shape, error);
    if (!status)
        status = attn_check_tensor(weights, "weights", ATTN_F32, error);
    if (status)
        return status;

    const int64_t full[4] = {problem->batch, problem->heads, problem->queries, problem->keys};
    const char *const axes[4] = {"batch", "head", "query", "key"};
    for (int axis = 0; axis < 4; axis++) {
        int64_t first = begin ? begin[axis] : 0;
        RETURN_IF(first < 0 || first > full[axis] || weights->shape[axis] > full[axis] - first,
                  error, ATTN_ERROR_SHAPE,
                  "weights want %" PRId64 " from %s %" PRId64
                  " on, expected a part of 0 to %" PRId64,
                  weights->shape[axis], axes[axis], first, full[axis]);
        run->begin[axis] = first;
    }
    status = attn_check_output(problem, weights, "weights", false, error);
    RETURN_IF(!status && attn_overlap(weights, stats), error, ATTN_ERROR_OVERLAP,
              "weights and stats share memory, expected an output apart from all inputs");
    run->stats = stats;
    run->weights = weights;
    return status;
}

attn_status attn_weights(attn_context *context, const attn_params *params, const attn_tensor *q,
                         const attn_tensor *k, const attn_tensor *stats, const int64_t begin[4],
                         const attn_tensor *weights)
{
    if (!context)
        return ATTN_ERROR_ARGUMENT;
    context->error.message[0] = '\0';

    struct attn_problem problem;
    struct rebuild run = {.problem = &problem, .kernels = context->kernels};
    attn_status status = attn_problem_resolve(&problem, params, q, k, &context->error);
    if (!status)
        status = resolve_part(&run, stats, begin, weights, &context->error);
    if (status)
        return status;
    for (int axis = 0; axis < 4; axis++)
        if (weights->shape[axis] == 0)
            return ATTN_SUCCESS;

    if (!scratch_bytes(&run, &run.bytes_a_thread)) {
        attn_error_memory(&context->error);
        return ATTN_ERROR_MEMORY;
    }
    run.bytes_a_thread -= run.bytes_a_thread % ATTN_ALIGNMENT;
    run.workspace = attn_context_workspace(context, run.bytes_a_thread);
    if (!run.workspace)
        return ATTN_ERROR_MEMORY;
    run.panels_a_head = (weights->shape[2] + run.kernels->lanes - 1) / run.kernels->lanes;
    attn_parallel_for(context->threads, run.panels_a_head * weights->shape[0] * weights->shape[1],
                      rebuild_panel, &run);
    return ATTN_SUCCESS;
}
