#include "format/stored_tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/stored_blocks.h"
#include "format/stored_number.h"

static const struct {
    const char *name;
    short block; /* elements that are stored together */
    short size;  /* bytes of a block */
    stored_block_decoder *decode;
} types[STORED_TYPES] = {
    [STORED_F64] = {"F64", 1, 8, NULL},
    [STORED_F32] = {"F32", 1, 4, NULL},
    [STORED_F16] = {"F16", 1, 2, NULL},
    [STORED_BF16] = {"BF16", 1, 2, NULL},
    [STORED_I64] = {"I64", 1, 8, NULL},
    [STORED_I32] = {"I32", 1, 4, NULL},
    [STORED_I16] = {"I16", 1, 2, NULL},
    [STORED_I8] = {"I8", 1, 1, NULL},
    [STORED_U64] = {"U64", 1, 8, NULL},
    [STORED_U32] = {"U32", 1, 4, NULL},
    [STORED_U16] = {"U16", 1, 2, NULL},
    [STORED_U8] = {"U8", 1, 1, NULL},
    [STORED_BOOL] = {"BOOL", 1, 1, NULL},
    [STORED_F8_E4M3] = {"F8_E4M3", 1, 1, NULL},
    [STORED_F8_E5M2] = {"F8_E5M2", 1, 1, NULL},
    [STORED_Q8_0] = {"Q8_0", 32, 34, stored_block_q8_0},
    [STORED_Q4_0] = {"Q4_0", 32, 18, stored_block_q4_0},
    [STORED_Q4_1] = {"Q4_1", 32, 20, stored_block_q4_1},
    [STORED_Q5_0] = {"Q5_0", 32, 22, stored_block_q5_0},
    [STORED_Q5_1] = {"Q5_1", 32, 24, stored_block_q5_1},
    [STORED_Q4_K] = {"Q4_K", 256, 144, stored_block_q4_k},
    [STORED_Q5_K] = {"Q5_K", 256, 176, stored_block_q5_k},
    [STORED_Q6_K] = {"Q6_K", 256, 210, stored_block_q6_k},
};

const char *stored_type_name(enum stored_type type)
{
    return types[type].name;
}

size_t stored_type_size(enum stored_type type)
{
    return (size_t)types[type].size;
}

int64_t stored_type_block(enum stored_type type)
{
    return types[type].block;
}

bool stored_type_from_name(const char *name, enum stored_type *type)
{
    for (int i = 0; i < STORED_TYPES; i++) {
        if (!types[i].decode && strcmp(types[i].name, name) == 0) {
            *type = (enum stored_type)i;
            return true;
        }
    }
    return false;
}

static bool little_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/* Rows are whole blocks, so that all blocks follow each other. */
static void decode_blocks(const struct stored_tensor *tensor, float *floats)
{
    int64_t block = stored_type_block(tensor->type);
    size_t size = stored_type_size(tensor->type);
    for (int64_t i = 0; i < tensor->elements / block; i++)
        types[tensor->type].decode(tensor->data + (size_t)i * size, floats + i * block);
}

bool stored_tensor_to_floats(const struct stored_tensor *tensor, float *floats,
                             struct attn_error *error)
{
    const unsigned char *data = tensor->data;
    int64_t elements = tensor->elements;
    if (types[tensor->type].decode) {
        decode_blocks(tensor, floats);
        return true;
    }
    switch (tensor->type) {
    case STORED_F32:
        if (little_endian() && elements > 0)
            memcpy(floats, data, tensor->size);
        else
            for (int64_t i = 0; i < elements; i++)
                floats[i] = stored_float(data + 4 * i);
        return true;
    case STORED_F64:
        for (int64_t i = 0; i < elements; i++)
            floats[i] = (float)stored_double(data + 8 * i);
        return true;
    case STORED_F16:
        for (int64_t i = 0; i < elements; i++)
            floats[i] = stored_half(data + 2 * i);
        return true;
    case STORED_BF16:
        for (int64_t i = 0; i < elements; i++)
            floats[i] = stored_bfloat(data + 2 * i);
        return true;
    default:
        return attn_error_set(error,
                              "tensor %s is %s, expected F32, F64, F16, BF16 or a type of blocks",
                              tensor->name, stored_type_name(tensor->type));
    }
}

const float *stored_tensor_as_floats(const struct stored_tensor *tensor)
{
    if (tensor->type != STORED_F32 || !little_endian() ||
        (uintptr_t)tensor->data % _Alignof(float) != 0)
        return NULL;
    return (const float *)(const void *)tensor->data;
}

static int compare_name(const void *a, const void *b)
{
    const struct stored_tensor *const *x = a;
    const struct stored_tensor *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

void stored_tensors_sort(const struct stored_tensor **tensors, size_t count)
{
    qsort(tensors, count, sizeof *tensors, compare_name);
}

const struct stored_tensor *stored_tensors_find(const struct stored_tensor *const *tensors,
                                                size_t count, const char *name)
{
    const struct stored_tensor wanted = {.name = name};
    const struct stored_tensor *key = &wanted;
    const struct stored_tensor *const *found =
        bsearch(&key, tensors, count, sizeof *tensors, compare_name);
    return found ? *found : NULL;
}

void stored_tensor_shape_text(const struct stored_tensor *tensor, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < tensor->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, i ? ", %" PRId64 : "%" PRId64,
                                 tensor->shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}
