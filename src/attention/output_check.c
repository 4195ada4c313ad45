/* What an output may not share memory with. */
#include "attention/overlap.h"
#include "attention/problem.h"
#include "attention/tensor_extent.h"

/* The arrays of attn_params as one-axis tensors, so that outputs can be held against them. */
static attn_tensor array(const void *data, attn_type type, int64_t rows, int64_t width)
{
    return attn_tensor_packed((void *)(uintptr_t)data, type, 1, 1, 1, data ? rows * width : 0);
}

/* Entries of the block table up to the last one that is read: behind it there may be none. */
static int64_t table_entries(const struct attn_problem *problem)
{
    int64_t s = problem->block_table ? problem->sequences - 1 : -1;
    while (s >= 0 && problem->key_lengths[s] == 0)
        s--;
    if (s < 0)
        return 0;
    return s * problem->block_table_width + (problem->key_lengths[s] - 1) / problem->page_length +
           1;
}

attn_status attn_check_output(const struct attn_problem *problem, const attn_tensor *output,
                              const char *name, bool reads_v, struct attn_error *error)
{
    if (attn_is_empty(output) || !output->data)
        return ATTN_SUCCESS;
    RETURN_IF(attn_addresses_twice(output), error, ATTN_ERROR_OVERLAP,
              "%s has strides that address one element twice, expected one place for each element",
              name);
    const struct attn_problem *p = problem;
    const int64_t sequences = p->sequences, starts = p->query_starts ? sequences + 1 : 0;
    attn_tensor slopes = array(p->alibi_slopes, ATTN_F32, p->heads, 1);
    attn_tensor sinks = array(p->sinks, ATTN_F32, p->heads, 1);
    attn_tensor lengths = array(p->key_lengths, ATTN_F64, sequences, 1);
    attn_tensor prefixes = array(p->prefix_lengths, ATTN_F64, sequences, 1);
    attn_tensor query_starts = array(p->query_starts, ATTN_F64, starts, 1);
    attn_tensor key_starts = array(p->key_starts, ATTN_F64, starts, 1);
    attn_tensor query_documents = array(p->query_documents, ATTN_F64, p->batch, p->queries);
    attn_tensor key_documents = array(p->key_documents, ATTN_F64, p->batch, p->keys);
    attn_tensor table = array(p->block_table, ATTN_F32, table_entries(p), 1);
    const struct {
        const char *name;
        const attn_tensor *tensor;
    } inputs[] = {
        {"q", &p->q},
        {"k", &p->k},
        {"v", reads_v ? &p->v : NULL},
        {"params.keep", p->has_keep ? &p->keep : NULL},
        {"params.bias", p->has_bias ? &p->bias : NULL},
        {"params.key_scales", p->k.type == ATTN_I8 ? &p->key_scales : NULL},
        {"params.value_scales", reads_v && p->v.type == ATTN_I8 ? &p->value_scales : NULL},
        {"params.alibi_slopes", &slopes},
        {"params.sinks", &sinks},
        {"params.key_lengths", &lengths},
        {"params.prefix_lengths", &prefixes},
        {"params.query_starts", &query_starts},
        {"params.key_starts", &key_starts},
        {"params.query_documents", &query_documents},
        {"params.key_documents", &key_documents},
        {"params.block_table", &table},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        RETURN_IF(inputs[i].tensor && inputs[i].tensor->data &&
                      attn_overlap(output, inputs[i].tensor),
                  error, ATTN_ERROR_OVERLAP,
                  "%s and %s share memory, expected an output apart from all inputs", name,
                  inputs[i].name);
    return ATTN_SUCCESS;
}
