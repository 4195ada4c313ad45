#include "harness/tensor.h"

#include "harness/element.h"

/* How a layout places its axes. */
struct rule {
    int order[4];       /* axes from the outermost to the innermost in memory */
    int64_t padding[4]; /* elements of gap behind each axis's last index */
    int64_t step;       /* between neighbours of the innermost axis */
    int64_t start;      /* elements of gap before the first */
    int reversed;
    int shared_axis; /* has stride 0; −1 for none */
};

static const struct rule rules[LAYOUT_INPUTS] = {
    [LAYOUT_PACKED] = {{0, 1, 2, 3}, {0, 0, 0, 0}, 1, 0, 0, -1},
    [LAYOUT_HEADS_INSIDE] = {{0, 2, 1, 3}, {0, 0, 0, 0}, 1, 0, 0, -1},
    [LAYOUT_TRANSPOSED] = {{0, 1, 3, 2}, {0, 0, 0, 0}, 1, 0, 0, -1},
    [LAYOUT_REVERSED] = {{0, 1, 2, 3}, {0, 0, 0, 0}, 1, 0, 1, -1},
    [LAYOUT_PADDED] = {{0, 1, 2, 3}, {0, 0, 1, 3}, 1, 1, 0, -1},
    [LAYOUT_SPREAD] = {{0, 1, 2, 3}, {0, 0, 0, 0}, 3, 0, 0, -1},
    [LAYOUT_SHARED_HEADS] = {{0, 1, 2, 3}, {0, 0, 0, 0}, 1, 0, 0, 1},
    [LAYOUT_SHARED_ROWS] = {{0, 1, 2, 3}, {0, 0, 0, 0}, 1, 0, 0, 2},
};

attn_tensor tensor_allocate(attn_type type, int64_t batch, int64_t heads, int64_t length,
                            int64_t dim, enum layout layout, enum guard_side side)
{
    const struct rule *rule = &rules[layout];
    attn_tensor tensor = {.type = type, .shape = {batch, heads, length, dim}};
    int64_t size = rule->step, last = 0;
    for (int place = 3; place >= 0; place--) {
        int axis = rule->order[place];
        int64_t count = tensor.shape[axis];
        if (axis == rule->shared_axis)
            continue;
        tensor.stride[axis] = size;
        last += count > 0 ? (count - 1) * size : 0;
        size *= (count > 0 ? count : 1) + rule->padding[axis];
    }
    size_t elements = tensor_elements(&tensor) ? (size_t)(rule->start + last + 1) : 0;
    int64_t first = rule->start;
    if (rule->reversed) {
        for (int axis = 0; axis < 4; axis++)
            tensor.stride[axis] = -tensor.stride[axis];
        first += last;
    }
    size_t bytes = element_size(type);
    char *memory = guarded_bytes(elements * bytes, bytes, side);
    element_fill_unwritten(type, memory, elements);
    tensor.data = memory + (elements ? first : 0) * (int64_t)bytes;
    return tensor;
}

size_t tensor_elements(const attn_tensor *tensor)
{
    size_t elements = 1;
    for (int axis = 0; axis < 4; axis++)
        elements *= (size_t)tensor->shape[axis];
    return elements;
}

static int64_t offset_of(const attn_tensor *tensor, const int64_t index[4])
{
    int64_t offset = 0;
    for (int axis = 0; axis < 4; axis++)
        offset += (tensor->shape[axis] == 1 ? 0 : index[axis]) * tensor->stride[axis];
    return offset;
}

double tensor_get(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i, int64_t c)
{
    return element_get(tensor->type, tensor->data, offset_of(tensor, (int64_t[]){b, h, i, c}));
}

void tensor_set(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i, int64_t c, double value)
{
    element_set(tensor->type, tensor->data, offset_of(tensor, (int64_t[]){b, h, i, c}), value);
}

/* Steps `index` through all elements in row-major order; false behind the last. */
static int next_index(const attn_tensor *tensor, int64_t index[4])
{
    for (int axis = 3; axis >= 0; axis--) {
        if (++index[axis] < tensor->shape[axis])
            return 1;
        index[axis] = 0;
    }
    return 0;
}

void tensor_fill_random(const attn_tensor *tensor, struct random_source *source, float low,
                        float high)
{
    if (tensor_elements(tensor) == 0)
        return;
    int64_t at[4] = {0, 0, 0, 0};
    do
        tensor_set(tensor, at[0], at[1], at[2], at[3], random_float(source, low, high));
    while (next_index(tensor, at));
}

void tensor_fill(const attn_tensor *tensor, double value)
{
    if (tensor_elements(tensor) == 0)
        return;
    int64_t at[4] = {0, 0, 0, 0};
    do
        tensor_set(tensor, at[0], at[1], at[2], at[3], value);
    while (next_index(tensor, at));
}

float *tensor_packed_copy(const attn_tensor *tensor)
{
    return tensor_convert(tensor, ATTN_F32, LAYOUT_PACKED, GUARD_BEHIND).data;
}

attn_tensor tensor_copy(const attn_tensor *tensor, enum layout layout, enum guard_side side)
{
    return tensor_convert(tensor, tensor->type, layout, side);
}

attn_tensor tensor_convert(const attn_tensor *tensor, attn_type type, enum layout layout,
                           enum guard_side side)
{
    attn_tensor copy = tensor_allocate(type, tensor->shape[0], tensor->shape[1], tensor->shape[2],
                                       tensor->shape[3], layout, side);
    if (tensor_elements(tensor) == 0)
        return copy;
    int64_t at[4] = {0, 0, 0, 0};
    do
        tensor_set(&copy, at[0], at[1], at[2], at[3],
                   tensor_get(tensor, at[0], at[1], at[2], at[3]));
    while (next_index(tensor, at));
    return copy;
}

attn_tensor tensor_part(const attn_tensor *tensor, int axis, int64_t begin, int64_t count)
{
    attn_tensor part = *tensor;
    part.shape[axis] = count;
    part.data = (char *)part.data + begin * part.stride[axis] * (int64_t)element_size(tensor->type);
    return part;
}
