#include "harness/attention_sequences.h"

static int64_t *integers(int64_t count)
{
    return guarded_bytes((size_t)count * sizeof(int64_t), sizeof(int64_t), GUARD_BEHIND);
}

static const int64_t *starts_of(const int64_t *lengths, int64_t count)
{
    int64_t *starts = integers(count + 1);
    starts[0] = 0;
    for (int64_t n = 0; n < count; n++)
        starts[n + 1] = starts[n] + lengths[n];
    return starts;
}

void attention_add_sequences(struct attention_problem *problem, int64_t sequences,
                             const int64_t *query_lengths, const int64_t *key_lengths)
{
    problem->params.sequences = sequences;
    problem->params.query_starts = starts_of(query_lengths, sequences);
    problem->params.key_starts = starts_of(key_lengths, sequences);
}

void attention_add_documents(struct attention_problem *problem, int64_t longest, uint64_t seed)
{
    struct random_source source = {seed};
    int64_t batch = problem->q.shape[0], queries = problem->q.shape[2], keys = problem->k.shape[2];
    int64_t *of_queries = integers(batch * queries), *of_keys = integers(batch * keys);
    for (int64_t b = 0; b < batch; b++) {
        int64_t document = 0, end = random_integer(&source, 1, longest);
        for (int64_t n = 0; n < queries || n < keys; n++) {
            if (n == end) {
                document++;
                end += random_integer(&source, 1, longest);
            }
            if (n < queries)
                of_queries[b * queries + n] = document;
            if (n < keys)
                of_keys[b * keys + n] = document;
        }
    }
    problem->params.query_documents = of_queries;
    problem->params.key_documents = of_keys;
}

/* The part of a mask or of scales; an axis of 1 stays. */
static void cut(attn_tensor *tensor, int axis, int64_t begin, int64_t count)
{
    if (tensor->shape[axis] != 1)
        *tensor = tensor_part(tensor, axis, begin, count);
}

static void cut_length(attn_tensor *tensor, const struct reference_sequence *sequence,
                       int64_t begin, int64_t count)
{
    *tensor = tensor_part(tensor, 0, sequence->batch, 1);
    *tensor = tensor_part(tensor, 2, begin, count);
}

static void cut_mask(attn_tensor *mask, const struct reference_sequence *sequence)
{
    cut(mask, 0, sequence->batch, 1);
    cut(mask, 2, sequence->query_begin, sequence->queries);
    cut(mask, 3, sequence->key_begin, sequence->keys);
}

static void cut_scales(attn_tensor *scales, const struct reference_sequence *sequence)
{
    cut(scales, 0, sequence->batch, 1);
    cut(scales, 2, sequence->key_begin, sequence->keys);
}

void attention_one_sequence(const struct attention_problem *problem, int64_t index,
                            struct attention_problem *alone)
{
    int64_t queries = problem->q.shape[2], keys = problem->k.shape[2];
    struct reference_sequence sequence =
        reference_sequence_at(&problem->params, index, queries, keys);
    attention_copy(problem, alone);
    attn_params *params = &alone->params;
    cut_length(&alone->q, &sequence, sequence.query_begin, sequence.queries);
    cut_length(&alone->k, &sequence, sequence.key_begin, sequence.keys);
    cut_length(&alone->v, &sequence, sequence.key_begin, sequence.keys);
    if (params->keep)
        cut_mask(&alone->keep, &sequence);
    if (params->bias)
        cut_mask(&alone->bias, &sequence);
    if (params->key_scales)
        cut_scales(&alone->key_scales, &sequence);
    if (params->value_scales)
        cut_scales(&alone->value_scales, &sequence);
    params->sequences = 0;
    params->query_starts = params->key_starts = NULL;
    params->key_lengths = params->key_lengths ? params->key_lengths + index : NULL;
    params->prefix_lengths = params->prefix_lengths ? params->prefix_lengths + index : NULL;
    if (params->query_documents) {
        params->query_documents += sequence.batch * queries + sequence.query_begin;
        params->key_documents += sequence.batch * keys + sequence.key_begin;
    }
}

void attention_one_head(const struct attention_problem *problem, int64_t head,
                        struct attention_problem *alone)
{
    int64_t key_head = head / (problem->q.shape[1] / problem->k.shape[1]);
    attention_copy(problem, alone);
    attn_params *params = &alone->params;
    alone->q = tensor_part(&problem->q, 1, head, 1);
    alone->k = tensor_part(&problem->k, 1, key_head, 1);
    alone->v = tensor_part(&problem->v, 1, key_head, 1);
    if (params->keep)
        cut(&alone->keep, 1, head, 1);
    if (params->bias)
        cut(&alone->bias, 1, head, 1);
    if (params->key_scales)
        cut(&alone->key_scales, 1, key_head, 1);
    if (params->value_scales)
        cut(&alone->value_scales, 1, key_head, 1);
    params->alibi_slopes = params->alibi_slopes ? params->alibi_slopes + head : NULL;
    params->sinks = params->sinks ? params->sinks + head : NULL;
}

static float *part_of(const float *data, const attn_tensor *like, int64_t dim,
                      const struct attention_part *part, int64_t first, int64_t count)
{
    attn_tensor whole = attn_tensor_packed((void *)(uintptr_t)data, ATTN_F32, like->shape[0],
                                           like->shape[1], like->shape[2], dim);
    whole = tensor_part(&whole, 0, part->batch, part->batches);
    whole = tensor_part(&whole, 1, part->head, part->heads);
    whole = tensor_part(&whole, 2, part->query, part->queries);
    whole = tensor_part(&whole, 3, first, count);
    return tensor_packed_copy(&whole);
}

void attention_result_part(const struct attention_problem *problem,
                           const struct attention_result *whole, const struct attention_part *part,
                           struct attention_result *result)
{
    int64_t keys = reference_keys(&problem->params, &problem->k), d_v = problem->v.shape[3];
    size_t rows = (size_t)(part->batches * part->heads * part->queries);
    *result = (struct attention_result){
        .o = part_of(whole->o, &problem->q, d_v, part, 0, d_v),
        .stats = part_of(whole->stats, &problem->q, 2, part, 0, 2),
        .rows = rows,
        .outputs = rows * (size_t)d_v,
    };
    if (!whole->weights)
        return;
    result->weights = part_of(whole->weights, &problem->q, keys, part, part->key, part->keys);
    result->weight_count = rows * (size_t)part->keys;
}
