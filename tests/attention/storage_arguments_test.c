/* Wrong arguments of packed sequences, pages and element types: the status, a message that names
 * the argument and says what would be right, and no output written. */
#include "harness/test.h"

#include <string.h>

#include "attention_call.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"

enum { HEADS = 4, KEY_HEADS = 2, QUERIES = 9, KEYS = 12, D_QK = 3, D_V = 6 };
enum { SEQUENCES = 3, PAGE = 4 };

/* Three sequences, one of them without a query; two queries and a key of none. */
static void begin_packed(struct attention_call *call)
{
    static const int64_t queries[SEQUENCES] = {4, 0, 3}, keys[SEQUENCES] = {3, 5, 3};
    attention_call_begin(call,
                         &(struct attention_sizes){1, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V});
    attention_add_sequences(&call->problem, SEQUENCES, queries, keys);
}

/* Sequences of 7 and 12 keys, in pages. */
static void begin_paged(struct attention_call *call)
{
    static const int64_t lengths[2] = {7, KEYS};
    attention_call_begin(call,
                         &(struct attention_sizes){2, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V});
    struct attention_problem problem;
    attention_copy(&call->problem, &problem);
    problem.params.key_lengths = lengths;
    attention_page(&problem, PAGE, 1, &call->problem);
    call->weights = tensor_allocate(ATTN_F32, 2, HEADS, QUERIES,
                                    reference_keys(&call->problem.params, &call->problem.k),
                                    LAYOUT_PACKED, GUARD_BEHIND);
}

static void begin_bytes(struct attention_call *call)
{
    attention_call_begin(call,
                         &(struct attention_sizes){2, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V});
    attention_store(&call->problem, ATTN_BF16, ATTN_I8, ATTN_I8);
}

static void begin_dense(struct attention_call *call)
{
    attention_call_begin(call,
                         &(struct attention_sizes){2, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V});
    attention_add_bias(&call->problem, (int64_t[]){1, 1, QUERIES, KEYS}, 3);
}

/* A copy of the starts with another number in one place. */
static void change_start(const int64_t **starts, int64_t place, int64_t value)
{
    int64_t *changed =
        guarded_bytes((SEQUENCES + 1) * sizeof(int64_t), sizeof(int64_t), GUARD_BEHIND);
    memcpy(changed, *starts, (SEQUENCES + 1) * sizeof(int64_t));
    changed[place] = value;
    *starts = changed;
}

static void sequences_negative(struct attention_call *call)
{
    call->problem.params.sequences = -1;
}

static void batch_of_two(struct attention_call *call)
{
    attn_tensor *const tensors[] = {&call->problem.q, &call->problem.k, &call->problem.v,
                                    &call->o,         &call->stats,     &call->weights};
    for (size_t n = 0; n < COUNT(tensors); n++) {
        tensors[n]->shape[0] = 2;
        tensors[n]->stride[0] = 0;
    }
}

static void no_query_starts(struct attention_call *call)
{
    call->problem.params.query_starts = NULL;
}

static void no_key_starts(struct attention_call *call)
{
    call->problem.params.key_starts = NULL;
}

static void queries_start_late(struct attention_call *call)
{
    change_start(&call->problem.params.query_starts, 0, 1);
}

static void keys_start_before(struct attention_call *call)
{
    change_start(&call->problem.params.key_starts, 0, -1);
}

static void query_starts_fall(struct attention_call *call)
{
    change_start(&call->problem.params.query_starts, 2, 3);
}

static void key_starts_fall(struct attention_call *call)
{
    change_start(&call->problem.params.key_starts, 3, 7);
}

static void queries_end_beyond(struct attention_call *call)
{
    change_start(&call->problem.params.query_starts, SEQUENCES, QUERIES + 1);
}

static void keys_end_beyond(struct attention_call *call)
{
    change_start(&call->problem.params.key_starts, SEQUENCES, KEYS + 1);
}

static void length_beyond_its_sequence(struct attention_call *call)
{
    static const int64_t lengths[SEQUENCES] = {3, 6, 3};
    call->problem.params.key_lengths = lengths;
}

static void prefix_negative(struct attention_call *call)
{
    static const int64_t lengths[SEQUENCES] = {0, 100, -1};
    call->problem.params.prefix_lengths = lengths;
}

static void documents_of_queries_only(struct attention_call *call)
{
    attention_add_documents(&call->problem, 3, 1);
    call->problem.params.key_documents = NULL;
}

static void documents_of_keys_only(struct attention_call *call)
{
    attention_add_documents(&call->problem, 3, 1);
    call->problem.params.query_documents = NULL;
}

static const struct attention_fault packed_faults[] = {
    {"-1 sequences", sequences_negative, ATTN_ERROR_ARGUMENT, "params.sequences", "at least 0",
     false},
    {"packed sequences in a batch of 2", batch_of_two, ATTN_ERROR_SHAPE, "batch 2", "1", false},
    {"no query_starts", no_query_starts, ATTN_ERROR_ARGUMENT, "params.query_starts", "sequences",
     false},
    {"no key_starts", no_key_starts, ATTN_ERROR_ARGUMENT, "params.key_starts", "sequences", false},
    {"query_starts from 1", queries_start_late, ATTN_ERROR_ARGUMENT, "query_starts[0] is 1",
     "expected 0", false},
    {"key_starts from -1", keys_start_before, ATTN_ERROR_ARGUMENT, "key_starts[0] is -1",
     "expected 0", false},
    {"query_starts that fall", query_starts_fall, ATTN_ERROR_ARGUMENT, "query_starts[2] is 3",
     "expected 4", false},
    {"key_starts that fall", key_starts_fall, ATTN_ERROR_ARGUMENT, "key_starts[3] is 7",
     "expected 8", false},
    {"query_starts beyond Lq", queries_end_beyond, ATTN_ERROR_ARGUMENT, "query_starts[3] is 10",
     "to 9", false},
    {"key_starts beyond Lk", keys_end_beyond, ATTN_ERROR_ARGUMENT, "key_starts[3] is 13", "to 12",
     false},
    {"a key length beyond its sequence", length_beyond_its_sequence, ATTN_ERROR_ARGUMENT,
     "key_lengths[1] is 6", "0 to 5", false},
    {"a negative prefix", prefix_negative, ATTN_ERROR_ARGUMENT, "prefix_lengths[2] is -1",
     "at least 0", false},
    {"documents of queries only", documents_of_queries_only, ATTN_ERROR_ARGUMENT, "key_documents",
     "both", false},
    {"documents of keys only", documents_of_keys_only, ATTN_ERROR_ARGUMENT, "query_documents",
     "both", false},
};

static void lengths_missing(struct attention_call *call)
{
    call->problem.params.key_lengths = NULL;
}

/* Entry 2 of the second sequence, the last that is reached. */
static void name_page(struct attention_call *call, int32_t page)
{
    int64_t width = call->problem.params.block_table_width;
    ((int32_t *)(uintptr_t)call->problem.params.block_table)[width + 2] = page;
}

static void page_negative(struct attention_call *call)
{
    name_page(call, -1);
}

static void page_beyond_the_last(struct attention_call *call)
{
    name_page(call, (int32_t)call->problem.k.shape[0]);
}

static void width_negative(struct attention_call *call)
{
    call->problem.params.block_table_width = -1;
}

static void width_beyond_all_keys(struct attention_call *call)
{
    call->problem.params.block_table_width = INT64_MAX / 2;
}

static void length_beyond_the_table(struct attention_call *call)
{
    static const int64_t lengths[2] = {7, 4 * PAGE + 1};
    call->problem.params.key_lengths = lengths;
}

static void values_in_other_pages(struct attention_call *call)
{
    call->problem.v.shape[2]--;
}

static void key_starts_too(struct attention_call *call)
{
    static const int64_t starts[2] = {0, 0};
    batch_of_two(call);
    call->problem.q.shape[0] = call->o.shape[0] = call->stats.shape[0] = 1;
    call->problem.params.sequences = 1;
    call->problem.params.query_starts = call->problem.params.key_starts = starts;
}

static const struct attention_fault paged_faults[] = {
    {"a block table without key lengths", lengths_missing, ATTN_ERROR_ARGUMENT,
     "params.key_lengths", "block table", false},
    {"page -1", page_negative, ATTN_ERROR_ARGUMENT, "params.block_table", "page -1", false},
    {"a page beyond the last", page_beyond_the_last, ATTN_ERROR_ARGUMENT, "params.block_table",
     "expected 0 to 6", false},
    {"block_table_width -1", width_negative, ATTN_ERROR_ARGUMENT, "params.block_table_width",
     "at least 0", false},
    {"block_table_width beyond all keys", width_beyond_all_keys, ATTN_ERROR_ARGUMENT,
     "params.block_table_width", "INT64_MAX keys", false},
    {"a key length beyond the table", length_beyond_the_table, ATTN_ERROR_ARGUMENT,
     "key_lengths[1] is 17", "0 to 16", false},
    {"v in other pages than k", values_in_other_pages, ATTN_ERROR_SHAPE, "v ", "[7, 2, 4, 6]",
     true},
    {"key_starts with a block table", key_starts_too, ATTN_ERROR_ARGUMENT, "params.key_starts",
     "block_table", false},
};

static void key_scales_missing(struct attention_call *call)
{
    call->problem.params.key_scales = NULL;
}

static void value_scales_missing(struct attention_call *call)
{
    call->problem.params.value_scales = NULL;
}

static void key_scales_of_another_shape(struct attention_call *call)
{
    call->problem.key_scales.shape[2] = KEYS - 1;
}

static void value_scales_of_another_shape(struct attention_call *call)
{
    call->problem.value_scales.shape[3] = D_V;
}

static void key_scales_of_f16(struct attention_call *call)
{
    call->problem.key_scales.type = ATTN_F16;
}

static void key_scales_without_data(struct attention_call *call)
{
    call->problem.key_scales.data = NULL;
}

static const struct attention_fault byte_faults[] = {
    {"no key_scales", key_scales_missing, ATTN_ERROR_ARGUMENT, "params.key_scales", "i8", false},
    {"no value_scales", value_scales_missing, ATTN_ERROR_ARGUMENT, "params.value_scales", "i8",
     true},
    {"key_scales's length", key_scales_of_another_shape, ATTN_ERROR_SHAPE, "params.key_scales",
     "[2, 2, 12, 1]", false},
    {"value_scales's dim", value_scales_of_another_shape, ATTN_ERROR_SHAPE, "params.value_scales",
     "[2, 2, 12, 1]", true},
    {"key_scales of f16", key_scales_of_f16, ATTN_ERROR_TYPE, "params.key_scales", "f32", false},
    {"key_scales without data", key_scales_without_data, ATTN_ERROR_ARGUMENT, "params.key_scales",
     "data", false},
};

static void q_of_bytes(struct attention_call *call)
{
    call->problem.q.type = ATTN_I8;
}

static void k_of_doubles(struct attention_call *call)
{
    call->problem.k = tensor_convert(&call->problem.k, ATTN_F64, LAYOUT_PACKED, GUARD_BEHIND);
}

static void v_of_doubles(struct attention_call *call)
{
    call->problem.v = tensor_convert(&call->problem.v, ATTN_F64, LAYOUT_PACKED, GUARD_BEHIND);
}

static void only_q_of_doubles(struct attention_call *call)
{
    call->problem.q = tensor_convert(&call->problem.q, ATTN_F64, LAYOUT_PACKED, GUARD_BEHIND);
}

static void bias_of_doubles(struct attention_call *call)
{
    attention_store_bias(&call->problem, ATTN_F64);
}

static void bias_of_bytes(struct attention_call *call)
{
    call->problem.bias.type = ATTN_I8;
}

static void o_of_doubles(struct attention_call *call)
{
    call->o = tensor_convert(&call->o, ATTN_F64, LAYOUT_PACKED, GUARD_BEHIND);
}

static void o_of_half_floats(struct attention_call *call)
{
    call->o.type = ATTN_F16;
}

static void stats_of_doubles(struct attention_call *call)
{
    call->stats = tensor_convert(&call->stats, ATTN_F64, LAYOUT_PACKED, GUARD_BEHIND);
}

static void all_inputs_of_doubles(struct attention_call *call)
{
    attention_store(&call->problem, ATTN_F64, ATTN_F64, ATTN_F64);
}

static const struct attention_fault type_faults[] = {
    {"q of bytes", q_of_bytes, ATTN_ERROR_TYPE, "q ", "f32", false},
    {"k of doubles", k_of_doubles, ATTN_ERROR_TYPE, "k ", "bf16", false},
    {"v of doubles", v_of_doubles, ATTN_ERROR_TYPE, "v ", "bf16", true},
    {"only q of doubles", only_q_of_doubles, ATTN_ERROR_TYPE, "k ", "f64", false},
    {"bias of doubles", bias_of_doubles, ATTN_ERROR_TYPE, "params.bias", "f32", false},
    {"bias of bytes", bias_of_bytes, ATTN_ERROR_TYPE, "params.bias", "f32", false},
    {"o of doubles", o_of_doubles, ATTN_ERROR_TYPE, "o ", "f32", true},
    {"o of f16, q of f32", o_of_half_floats, ATTN_ERROR_TYPE, "o ", "f32", true},
    {"stats of doubles", stats_of_doubles, ATTN_ERROR_TYPE, "stats", "f32", false},
    {"o of f32, inputs of doubles", all_inputs_of_doubles, ATTN_ERROR_TYPE, "o ", "f64", true},
};

static void make_packed_fault(const void *argument)
{
    attention_check_fault(begin_packed, argument);
}

static void make_paged_fault(const void *argument)
{
    attention_check_fault(begin_paged, argument);
}

static void make_byte_fault(const void *argument)
{
    attention_check_fault(begin_bytes, argument);
}

static void make_type_fault(const void *argument)
{
    attention_check_fault(begin_dense, argument);
}

static void run_faults(test_body *body, const struct attention_fault *faults, size_t count)
{
    for (size_t n = 0; n < count; n++)
        test_run(body, &faults[n], "%s", faults[n].what);
}

/* What the faults start from. Entries of the table that no key length reaches name no page. */
static void right_calls_succeed(const void *argument)
{
    (void)argument;
    void (*const begins[])(struct attention_call * call) = {begin_packed, begin_paged, begin_bytes,
                                                            begin_dense};
    for (size_t n = 0; n < COUNT(begins); n++) {
        struct attention_call call;
        begins[n](&call);
        test_context("call %zu", n);
        CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
        CHECK_EQUAL(attention_call_weights(&call), ATTN_SUCCESS);
        CHECK_EQUAL(attention_call_decode(&call), ATTN_SUCCESS);
        attention_call_end(&call);
    }
}

/* What is given beside tensors of another type is not looked at. */
static void scales_of_floats_are_ignored(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin_dense(&call);
    attn_tensor nonsense = {NULL, (attn_type)77, {-1, 2, 3, 4}, {0, 0, 0, 0}};
    call.problem.params.key_scales = call.problem.params.value_scales = &nonsense;
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    CHECK_EQUAL(attention_call_weights(&call), ATTN_SUCCESS);
    attention_call_end(&call);
}

int main(void)
{
    test_run(right_calls_succeed, NULL, "right calls succeed");
    run_faults(make_packed_fault, packed_faults, COUNT(packed_faults));
    run_faults(make_paged_fault, paged_faults, COUNT(paged_faults));
    run_faults(make_byte_fault, byte_faults, COUNT(byte_faults));
    run_faults(make_type_fault, type_faults, COUNT(type_faults));
    test_run(scales_of_floats_are_ignored, NULL, "scales beside floats are ignored");
    return test_finish();
}
