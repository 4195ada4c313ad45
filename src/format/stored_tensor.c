#include "format/stored_tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [STORED_F64] = {"F64", 8},         [STORED_F32] = {"F32", 4},
    [STORED_F16] = {"F16", 2},         [STORED_BF16] = {"BF16", 2},
    [STORED_I64] = {"I64", 8},         [STORED_I32] = {"I32", 4},
    [STORED_I16] = {"I16", 2},         [STORED_I8] = {"I8", 1},
    [STORED_U64] = {"U64", 8},         [STORED_U32] = {"U32", 4},
    [STORED_U16] = {"U16", 2},         [STORED_U8] = {"U8", 1},
    [STORED_BOOL] = {"BOOL", 1},       [STORED_F8_E4M3] = {"F8_E4M3", 1},
    [STORED_F8_E5M2] = {"F8_E5M2", 1},
};

const char *stored_type_name(enum stored_type type)
{
    return types[type].name;
}

size_t stored_type_size(enum stored_type type)
{
    return types[type].size;
}

bool stored_type_from_name(const char *name, enum stored_type *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *type = (enum stored_type)i;
            return true;
        }
    }
    return false;
}

static uint16_t read_u16(const unsigned char *bytes)
{
    return (uint16_t)(bytes[0] | (unsigned)bytes[1] << 8);
}

static uint32_t read_u32(const unsigned char *bytes)
{
    return read_u16(bytes) | (uint32_t)read_u16(bytes + 2) << 16;
}

static uint64_t read_u64(const unsigned char *bytes)
{
    return read_u32(bytes) | (uint64_t)read_u32(bytes + 4) << 32;
}

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. Exact, NaN payloads included. */
static float float_from_half(uint16_t half)
{
    enum { EXPONENT_ONES = 0x1f, BIAS_DIFFERENCE = 127 - 15 };
    uint32_t sign = (uint32_t)(half >> 15) << 31;
    uint32_t exponent = half >> 10 & EXPONENT_ONES;
    uint32_t fraction = half & 0x3ffU;
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24F; /* zero or a denormal, normal as a float */
        return sign ? -magnitude : magnitude;
    }
    exponent = exponent == EXPONENT_ONES ? 0xff : exponent + BIAS_DIFFERENCE;
    return float_from_bits(sign | exponent << 23 | fraction << 13);
}

static bool little_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

bool stored_tensor_to_floats(const struct stored_tensor *tensor, float *floats,
                             struct attn_error *error)
{
    const unsigned char *data = tensor->data;
    int64_t elements = tensor->elements;
    switch (tensor->type) {
    case STORED_F32:
        if (little_endian() && elements > 0)
            memcpy(floats, data, tensor->size);
        else
            for (int64_t i = 0; i < elements; i++)
                floats[i] = float_from_bits(read_u32(data + 4 * i));
        return true;
    case STORED_F64:
        for (int64_t i = 0; i < elements; i++)
            floats[i] = (float)double_from_bits(read_u64(data + 8 * i));
        return true;
    case STORED_F16:
        for (int64_t i = 0; i < elements; i++)
            floats[i] = float_from_half(read_u16(data + 2 * i));
        return true;
    case STORED_BF16:
        for (int64_t i = 0; i < elements; i++)
            floats[i] = float_from_bits((uint32_t)read_u16(data + 2 * i) << 16);
        return true;
    default:
        return attn_error_set(error, "tensor %s is %s, expected F32, F64, F16 or BF16",
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
