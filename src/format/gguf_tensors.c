#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "format/gguf_file.h"

enum {
    MAX_RANK = 4,
    DEFAULT_ALIGNMENT = 32,
    LEAST_SIZE = 8 + 4 + 4 + 8 /* an empty name, a rank of 0, type, offset */
};

/* "PATH: tensor NAME" and what follows; a name of any length leaves room for that. */
#define REFUSE_TENSOR(cursor, tensor, format, ...)                                                 \
    attn_error_set((cursor)->error, "%s: tensor %.160s" format, (cursor)->path, (tensor)->name,    \
                   __VA_ARGS__)

/* The types of GGML by their number there; those without `read` are known by name alone,
 * the ones among them that GGML has taken away again too. */
static const struct {
    const char *name;
    bool read;
    enum stored_type type;
} types[] = {
    [0] = {"F32", true, STORED_F32},
    [1] = {"F16", true, STORED_F16},
    [2] = {"Q4_0", true, STORED_Q4_0},
    [3] = {"Q4_1", true, STORED_Q4_1},
    [6] = {"Q5_0", true, STORED_Q5_0},
    [7] = {"Q5_1", true, STORED_Q5_1},
    [8] = {"Q8_0", true, STORED_Q8_0},
    [9] = {.name = "Q8_1"},
    [10] = {.name = "Q2_K"},
    [11] = {.name = "Q3_K"},
    [12] = {"Q4_K", true, STORED_Q4_K},
    [13] = {"Q5_K", true, STORED_Q5_K},
    [14] = {"Q6_K", true, STORED_Q6_K},
    [15] = {.name = "Q8_K"},
    [16] = {.name = "IQ2_XXS"},
    [17] = {.name = "IQ2_XS"},
    [18] = {.name = "IQ3_XXS"},
    [19] = {.name = "IQ1_S"},
    [20] = {.name = "IQ4_NL"},
    [21] = {.name = "IQ3_S"},
    [22] = {.name = "IQ2_S"},
    [23] = {.name = "IQ4_XS"},
    [24] = {"I8", true, STORED_I8},
    [25] = {"I16", true, STORED_I16},
    [26] = {"I32", true, STORED_I32},
    [27] = {"I64", true, STORED_I64},
    [28] = {"F64", true, STORED_F64},
    [29] = {.name = "IQ1_M"},
    [30] = {"BF16", true, STORED_BF16},
    [31] = {.name = "Q4_0_4_4"},
    [32] = {.name = "Q4_0_4_8"},
    [33] = {.name = "Q4_0_8_8"},
    [34] = {.name = "TQ1_0"},
    [35] = {.name = "TQ2_0"},
    [36] = {.name = "IQ4_NL_4_4"},
    [37] = {.name = "IQ4_NL_4_8"},
    [38] = {.name = "IQ4_NL_8_8"},
    [39] = {.name = "MXFP4"},
    [40] = {.name = "NVFP4"},
    [41] = {.name = "Q1_0"},
};

/* The dimensions, fastest first in the file. Zeros are left out of the product that must not
 * overflow, so that no product of some of the dimensions does. */
static bool read_shape(struct gguf_cursor *cursor, struct stored_tensor *tensor)
{
    uint32_t rank;
    if (!gguf_take_u32(cursor, &rank))
        return false;
    if (rank > MAX_RANK)
        return REFUSE_TENSOR(cursor, tensor, " has %" PRIu32 " dimensions, at most %d are possible",
                             rank, MAX_RANK);
    tensor->rank = (int)rank;
    tensor->elements = 1;
    int64_t product = 1;
    for (int i = tensor->rank; i-- > 0;) {
        uint64_t dimension;
        if (!gguf_take_u64(cursor, &dimension))
            return false;
        if (dimension > INT64_MAX ||
            (dimension > 0 && !attn_checked_multiply(product, (int64_t)dimension, &product)))
            return REFUSE_TENSOR(cursor, tensor, ": %s", "the size is too large");
        tensor->shape[i] = (int64_t)dimension;
        tensor->elements *= tensor->shape[i];
    }
    return true;
}

static bool read_type(struct gguf_cursor *cursor, struct stored_tensor *tensor)
{
    uint32_t type;
    if (!gguf_take_u32(cursor, &type))
        return false;
    if (type >= sizeof types / sizeof *types || !types[type].name)
        return REFUSE_TENSOR(cursor, tensor, " has unknown type %" PRIu32, type);
    if (!types[type].read)
        return REFUSE_TENSOR(cursor, tensor, " is %s, which is not supported", types[type].name);
    tensor->type = types[type].type;
    return true;
}

/* Rows must be whole blocks; what they are in bytes must be countable. */
static bool measure(const struct gguf_cursor *cursor, struct stored_tensor *tensor)
{
    int64_t block = stored_type_block(tensor->type);
    int64_t row = tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1;
    if (row % block != 0)
        return REFUSE_TENSOR(cursor, tensor, ": a row of %" PRId64 " is not a multiple of %" PRId64,
                             row, block);
    int64_t size;
    if (!attn_checked_multiply(tensor->elements / block, (int64_t)stored_type_size(tensor->type),
                               &size) ||
        (uint64_t)size > SIZE_MAX)
        return REFUSE_TENSOR(cursor, tensor, ": %s", "the size is too large");
    tensor->size = (size_t)size;
    return true;
}

/* Everything but where the data is: *offset from where the data of all tensors begins. */
static bool read_tensor(struct gguf_cursor *cursor, struct stored_tensor *tensor, uint64_t *offset)
{
    char *name;
    if (!gguf_take_name(cursor, &name))
        return false;
    tensor->name = name;
    return read_shape(cursor, tensor) && read_type(cursor, tensor) && measure(cursor, tensor) &&
           gguf_take_u64(cursor, offset);
}

static bool place_tensor(const struct gguf *file, const struct gguf_cursor *cursor,
                         uint64_t alignment, struct stored_tensor *tensor, uint64_t offset)
{
    if (offset % alignment != 0)
        return REFUSE_TENSOR(cursor, tensor,
                             ": its offset %" PRIu64 " is not a multiple of %" PRIu64, offset,
                             alignment);
    uint64_t position = (uint64_t)(cursor->next - file->map.data);
    uint64_t begin = (position + alignment - 1) / alignment * alignment;
    uint64_t end = file->map.size;
    if (begin > end || offset > end - begin || tensor->size > end - begin - offset)
        return REFUSE_TENSOR(cursor, tensor, "%s", " is beyond the end of the file");
    tensor->data = file->map.data + begin + offset;
    return true;
}

/* 0 for an alignment that is refused, by GGML's own rule; 2^30 is more than any file has. */
static uint64_t read_alignment(const struct gguf *file, struct attn_error *error)
{
    int64_t value = DEFAULT_ALIGNMENT;
    if (!gguf_integer(file, "general.alignment", GGUF_OPTIONAL, &value, error))
        return 0;
    if (value > 0 && value <= 1 << 30 && (value & (value - 1)) == 0)
        return (uint64_t)value;
    attn_error_set(error, "%s: general.alignment is %" PRId64 ", expected a power of two",
                   file->path, value);
    return 0;
}

static bool sort_tensors(struct gguf *file, const struct gguf_cursor *cursor)
{
    for (size_t i = 0; i < file->tensor_count; i++)
        file->tensors_by_name[i] = &file->tensors[i];
    stored_tensors_sort(file->tensors_by_name, file->tensor_count);
    for (size_t i = 1; i < file->tensor_count; i++)
        if (strcmp(file->tensors_by_name[i - 1]->name, file->tensors_by_name[i]->name) == 0)
            return REFUSE_TENSOR(cursor, file->tensors_by_name[i], "%s", " is there twice");
    return true;
}

static bool read_all(struct gguf *file, struct gguf_cursor *cursor, uint64_t *offsets,
                     uint64_t count)
{
    uint64_t alignment = read_alignment(file, cursor->error);
    if (alignment == 0)
        return false;
    while (file->tensor_count < count) {
        size_t i = file->tensor_count++;
        if (!read_tensor(cursor, &file->tensors[i], &offsets[i]))
            return false;
    }
    for (size_t i = 0; i < file->tensor_count; i++)
        if (!place_tensor(file, cursor, alignment, &file->tensors[i], offsets[i]))
            return false;
    return sort_tensors(file, cursor);
}

bool gguf_read_tensors(struct gguf *file, struct gguf_cursor *cursor, uint64_t count)
{
    cursor->part = "list of tensors";
    if (!gguf_check_count(cursor, count, LEAST_SIZE))
        return false;
    file->tensors = calloc((size_t)count + 1, sizeof *file->tensors);
    file->tensors_by_name = calloc((size_t)count + 1, sizeof(struct stored_tensor *));
    uint64_t *offsets = calloc((size_t)count + 1, sizeof *offsets);
    bool done = file->tensors && file->tensors_by_name && offsets
                    ? read_all(file, cursor, offsets, count)
                    : attn_error_memory(cursor->error);
    free(offsets);
    return done;
}

size_t gguf_tensor_count(const struct gguf *file)
{
    return file->tensor_count;
}

const struct stored_tensor *gguf_tensor_at(const struct gguf *file, size_t index)
{
    return &file->tensors[index];
}

const struct stored_tensor *gguf_tensor(const struct gguf *file, const char *name)
{
    return stored_tensors_find(file->tensors_by_name, file->tensor_count, name);
}
