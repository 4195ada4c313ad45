#include "attention/case_input.h"

#include <stdlib.h>
#include <string.h>

#include "harness/test.h"

/* A tensor that reaches over more elements than this is laid out in untouched address space. */
static const int64_t sparse_from = INT64_C(1) << 24;

double case_number(const json_t *json)
{
    return json_is_string(json) ? strtod(json_string_value(json), NULL) : json_number_value(json);
}

double *case_numbers(const json_t *array, size_t *count)
{
    *count = json_array_size(array);
    double *numbers = guarded_doubles(*count);
    for (size_t i = 0; i < *count; i++)
        numbers[i] = case_number(json_array_get(array, i));
    return numbers;
}

/* Steps `index` through a shape in row-major order; false behind the last element. */
static bool next_index(const int64_t shape[4], int64_t index[4])
{
    for (int axis = 3; axis >= 0; axis--) {
        if (++index[axis] < shape[axis])
            return true;
        index[axis] = 0;
    }
    return false;
}

/* Memory for a view whose strides are given: gaps are NaN, or cannot be touched. */
static void place_view(attn_tensor *tensor, int64_t start)
{
    int64_t low = start, high = start;
    for (int axis = 0; axis < 4; axis++) {
        int64_t reach = (tensor->shape[axis] - 1) * tensor->stride[axis];
        *(reach < 0 ? &low : &high) += reach;
    }
    if (low < 0)
        test_bail_out("a case's tensor begins before its storage");
    if (high < sparse_from) {
        tensor->data = guarded_floats((size_t)high + 1, GUARD_BEHIND) + start;
        return;
    }
    float *space = guarded_address_space(((size_t)high + 1) * sizeof *space);
    int64_t index[4] = {0, 0, 0, 0};
    do {
        int64_t place = start;
        for (int axis = 0; axis < 4; axis++)
            place += index[axis] * tensor->stride[axis];
        guarded_touch(space + place, sizeof *space);
    } while (next_index(tensor->shape, index));
    tensor->data = space + start;
}

attn_tensor case_tensor(const json_t *json, attn_type type)
{
    const json_t *axes = json_object_get(json, "shape");
    int64_t shape[4] = {1, 1, 1, 1};
    for (size_t axis = 0; axis < json_array_size(axes) && axis < 4; axis++)
        shape[axis] = json_integer_value(json_array_get(axes, axis));
    attn_tensor tensor =
        tensor_allocate(type, shape[0], shape[1], shape[2], shape[3], LAYOUT_PACKED, GUARD_BEHIND);
    const json_t *strides = json_object_get(json, "strides");
    if (strides && type != ATTN_F32)
        test_bail_out("a case has strides and another type than f32");
    if (strides) {
        for (size_t axis = 0; axis < 4; axis++)
            tensor.stride[axis] = json_integer_value(json_array_get(strides, axis));
        place_view(&tensor, json_integer_value(json_object_get(json, "start")));
    }
    const json_t *data = json_object_get(json, "data");
    size_t count = json_array_size(data);
    if (count != tensor_elements(&tensor))
        test_fail(__FILE__, __LINE__, "a tensor of %zu elements has %zu numbers",
                  tensor_elements(&tensor), count);
    int64_t at[4] = {0, 0, 0, 0};
    for (size_t i = 0; i < count; i++, next_index(shape, at))
        tensor_set(&tensor, at[0], at[1], at[2], at[3], case_number(json_array_get(data, i)));
    return tensor;
}

static bool read_floats(const json_t *array, float *floats, size_t limit)
{
    size_t count = json_array_size(array);
    for (size_t i = 0; i < count && i < limit; i++)
        floats[i] = (float)case_number(json_array_get(array, i));
    return count <= limit;
}

/* {"offset": n} or {"align": "top-left" | "bottom-right"}, as an offset. */
static int64_t read_offset(const json_t *json, const struct attention_problem *problem)
{
    const char *align = json_string_value(json_object_get(json, "align"));
    if (align && strcmp(align, "bottom-right") == 0)
        return problem->k.shape[2] - problem->q.shape[2];
    return json_integer_value(json_object_get(json, "offset"));
}

/* The offset that causal, window and ALiBi share; they may not differ. */
static void set_offset(attn_params *params, int64_t offset, bool *is_set)
{
    if (*is_set && params->offset != offset)
        test_fail(__FILE__, __LINE__, "the case has more than one offset");
    params->alignment = ATTN_ALIGN_OFFSET;
    params->offset = offset;
    *is_set = true;
}

static void read_positions(const json_t *json, struct case_input *input)
{
    struct attention_problem *problem = &input->problem;
    attn_params *params = &problem->params;
    bool is_set = false;
    const json_t *causal = json_object_get(json, "causal");
    const json_t *window = json_object_get(json, "window");
    const json_t *alibi = json_object_get(json, "alibi");
    if (causal) {
        params->causal = 1;
        set_offset(params, read_offset(causal, problem), &is_set);
        const char *align = json_string_value(json_object_get(causal, "align"));
        if (align)
            params->alignment =
                strcmp(align, "bottom-right") == 0 ? ATTN_ALIGN_BOTTOM_RIGHT : ATTN_ALIGN_TOP_LEFT;
    }
    attn_alignment named = params->alignment;
    if (window) {
        const json_t *left = json_object_get(window, "left");
        const json_t *right = json_object_get(window, "right");
        params->window_left = left ? json_integer_value(left) : ATTN_WINDOW_OPEN;
        params->window_right = right ? json_integer_value(right) : ATTN_WINDOW_OPEN;
        set_offset(params, read_offset(window, problem), &is_set);
    }
    if (alibi) {
        if (!read_floats(json_object_get(alibi, "slopes"), input->slopes, CASE_MAX_HEADS))
            test_fail(__FILE__, __LINE__, "the case has too many slopes");
        params->alibi_slopes = input->slopes;
        set_offset(params, read_offset(alibi, problem), &is_set);
    }
    /* The same offset by its name, where the case names it. */
    if (causal)
        params->alignment = named;
}

static attn_type read_type(const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "dtype"));
    if (!name)
        return ATTN_F32;
    if (strcmp(name, "f16") == 0)
        return ATTN_F16;
    test_bail_out("a case has a dtype that is not known here");
}

static void read_dropout(const json_t *json, struct case_input *input)
{
    const json_t *seeds = json_object_get(json, "seeds");
    input->problem.params.dropout = (float)case_number(json_object_get(json, "dropout"));
    input->seed_count = seeds ? json_array_size(seeds) : 1;
    if (input->seed_count > CASE_MAX_SEEDS)
        test_bail_out("a case has too many seeds");
    input->seeds[0] = 0;
    for (size_t i = 0; i < json_array_size(seeds); i++)
        input->seeds[i] = (uint64_t)json_integer_value(json_array_get(seeds, i));
}

bool case_input_read(const json_t *json, struct case_input *input)
{
    static const char *const known[] = {
        "q",     "k",    "v",      "scale",  "softcap", "bias", "keep",    "key_lengths",
        "alibi", "sink", "causal", "window", "dtype",   "do",   "dropout", "seeds"};
    const char *field;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)json, field, value) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            is_known |= strcmp(field, known[i]) == 0;
        if (!is_known) {
            test_fail(__FILE__, __LINE__, "the case has a field %s that is not read here", field);
            return false;
        }
    }
    struct attention_problem *problem = &input->problem;
    *problem = (struct attention_problem){.output_layout = LAYOUT_PACKED, .side = GUARD_BEHIND};
    attn_params *params = &problem->params;
    attn_params_init(params);
    attn_type type = read_type(json);
    problem->q = case_tensor(json_object_get(json, "q"), type);
    problem->k = case_tensor(json_object_get(json, "k"), type);
    problem->v = case_tensor(json_object_get(json, "v"), type);
    if (json_object_get(json, "scale"))
        params->scale = (float)case_number(json_object_get(json, "scale"));
    if (json_object_get(json, "softcap"))
        params->soft_cap = (float)case_number(json_object_get(json, "softcap"));
    if (json_object_get(json, "bias")) {
        problem->bias = case_tensor(json_object_get(json, "bias"), ATTN_F32);
        params->bias = &problem->bias;
    }
    if (json_object_get(json, "keep")) {
        problem->keep = case_tensor(json_object_get(json, "keep"), ATTN_BOOL);
        params->keep = &problem->keep;
    }
    const json_t *lengths = json_object_get(json, "key_lengths");
    for (size_t b = 0; b < json_array_size(lengths) && b < CASE_MAX_BATCH; b++)
        input->key_lengths[b] = json_integer_value(json_array_get(lengths, b));
    params->key_lengths = lengths ? input->key_lengths : NULL;
    const json_t *sinks = json_object_get(json, "sink");
    if (!read_floats(sinks, input->sinks, CASE_MAX_HEADS)) {
        test_fail(__FILE__, __LINE__, "the case has too many sinks");
        return false;
    }
    params->sinks = sinks ? input->sinks : NULL;
    read_positions(json, input);
    read_dropout(json, input);
    input->d_o = (attn_tensor){0};
    if (json_object_get(json, "do"))
        input->d_o = case_tensor(json_object_get(json, "do"), type);
    return true;
}
