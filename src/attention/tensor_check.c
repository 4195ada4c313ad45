#include "attention/tensor_check.h"

#include <inttypes.h>
#include <stdio.h>

#include "attention/tensor_extent.h"

#define SHAPE_FORMAT        "[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]"
#define SHAPE_VALUES(shape) (shape)[0], (shape)[1], (shape)[2], (shape)[3]

/* In the order in which messages list them. */
static const struct {
    attn_type type;
    const char *name;
} type_names[] = {
    {ATTN_F32, "f32"}, {ATTN_F16, "f16"}, {ATTN_BF16, "bf16"}, {ATTN_F64, "f64"},
    {ATTN_I8, "i8"},   {ATTN_I32, "i32"}, {ATTN_BOOL, "bool"},
};

enum { TYPES = sizeof type_names / sizeof type_names[0] };

static const char *type_name(attn_type type)
{
    for (int n = 0; n < TYPES; n++)
        if (type_names[n].type == type)
            return type_names[n].name;
    return "unknown";
}

/* Whether it is a type at all, and one of the set. */
static bool is_one_of(attn_type type, unsigned types)
{
    return attn_type_size(type) > 0 && types >> type & 1;
}

/* "f32, f16 or bf16". */
struct type_list {
    char text[64];
};

static struct type_list list_types(unsigned types)
{
    struct type_list list = {""};
    int left = 0;
    for (int n = 0; n < TYPES; n++)
        left += is_one_of(type_names[n].type, types);
    size_t used = 0;
    for (int n = 0; n < TYPES; n++) {
        if (!is_one_of(type_names[n].type, types))
            continue;
        left--;
        const char *behind = left > 1 ? ", " : left == 1 ? " or " : "";
        int length =
            snprintf(list.text + used, sizeof list.text - used, "%s%s", type_names[n].name, behind);
        used += (size_t)length;
    }
    return list;
}

attn_status attn_check_tensor(const attn_tensor *tensor, const char *name, unsigned types,
                              struct attn_error *error)
{
    RETURN_IF(!tensor, error, ATTN_ERROR_ARGUMENT, "%s is NULL, expected a tensor", name);
    RETURN_IF(!is_one_of(tensor->type, types), error, ATTN_ERROR_TYPE,
              "%s has type %s, expected %s", name, type_name(tensor->type), list_types(types).text);
    for (int axis = 0; axis < 4; axis++)
        RETURN_IF(tensor->shape[axis] < 0, error, ATTN_ERROR_SHAPE,
                  "%s has shape " SHAPE_FORMAT ", expected sizes of at least 0", name,
                  SHAPE_VALUES(tensor->shape));
    RETURN_IF(!tensor->data && !attn_is_empty(tensor), error, ATTN_ERROR_ARGUMENT,
              "%s has no data, expected a pointer to its first element", name);
    int size = (int)attn_type_size(tensor->type);
    RETURN_IF((uintptr_t)tensor->data % (uintptr_t)size != 0, error, ATTN_ERROR_ARGUMENT,
              "%s has data that is not aligned to its elements of %d bytes", name, size);
    RETURN_IF(!attn_extent_fits(tensor), error, ATTN_ERROR_SHAPE,
              "%s has a shape and strides that reach beyond the address space", name);
    return ATTN_SUCCESS;
}

attn_tensor attn_without_offsets(const attn_tensor *tensor)
{
    attn_tensor view = *tensor;
    for (int axis = 0; axis < 4 && attn_is_empty(tensor); axis++)
        view.stride[axis] = 0;
    return view;
}

attn_status attn_check_shape(const attn_tensor *tensor, const char *name, const int64_t expected[4],
                             struct attn_error *error)
{
    for (int axis = 0; axis < 4; axis++)
        RETURN_IF(tensor->shape[axis] != expected[axis], error, ATTN_ERROR_SHAPE,
                  "%s has shape " SHAPE_FORMAT ", expected " SHAPE_FORMAT, name,
                  SHAPE_VALUES(tensor->shape), SHAPE_VALUES(expected));
    return ATTN_SUCCESS;
}

attn_status attn_resolve_broadcast(attn_tensor *resolved, const attn_tensor *tensor,
                                   const char *name, unsigned types, const int64_t full[4],
                                   struct attn_error *error)
{
    attn_status status = attn_check_tensor(tensor, name, types, error);
    if (status)
        return status;
    *resolved = attn_without_offsets(tensor);
    for (int axis = 0; axis < 4; axis++) {
        RETURN_IF(tensor->shape[axis] != full[axis] && tensor->shape[axis] != 1, error,
                  ATTN_ERROR_SHAPE,
                  "%s has shape " SHAPE_FORMAT ", expected " SHAPE_FORMAT " with any axis 1", name,
                  SHAPE_VALUES(tensor->shape), SHAPE_VALUES(full));
        if (tensor->shape[axis] == 1)
            resolved->stride[axis] = 0;
    }
    return ATTN_SUCCESS;
}
