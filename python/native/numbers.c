#include "numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

bool numbers_round(double number, const char *name, float *rounded)
{
    *rounded = (float)number;
    if (!isinf(*rounded) || isinf(number))
        return true;
    PyErr_Format(PyExc_ValueError, "%s is out of range: it is rounded to float32", name);
    return false;
}

/* libattn looks at the memory of the other arrays; numbers of one axis are read here. */
static bool check_memory(const struct array *array)
{
    int64_t count = array->shape[0], stride = array->stride[0];
    if (count <= 0)
        return true;
    if (!array->data) {
        PyErr_Format(PyExc_ValueError, "%s has no data, expected a pointer to its first element",
                     array->name);
        return false;
    }
    int64_t reach = PTRDIFF_MAX / count / (array->bits / 8);
    if (stride <= reach && stride >= -reach)
        return true;
    PyErr_Format(PyExc_ValueError, "%s has a shape and strides that reach beyond the address space",
                 array->name);
    return false;
}

/* Numbers of one axis, `count` of them. */
static bool open_numbers(struct array *array, PyObject *object, const char *name, int64_t count)
{
    if (!array_open(array, object, name))
        return false;
    if (array->axes == 1 && array->shape[0] == count) {
        if (check_memory(array))
            return true;
    } else if (array->axes == 1) {
        PyErr_Format(PyExc_ValueError, "%s has length %lld; it must have %lld", name,
                     (long long)array->shape[0], (long long)count);
    } else {
        PyErr_Format(PyExc_ValueError, "%s has %d axes; it must have one, of length %lld", name,
                     array->axes, (long long)count);
    }
    array_close(array);
    return false;
}

/* Room for `count` numbers of `size` bytes: views may have more elements than there are addresses.
 * NULL with an exception set. */
static void *make_room(int64_t count, size_t size)
{
    uint64_t wanted = count > 0 ? (uint64_t)count : 1;
    void *room = wanted <= SIZE_MAX / size ? malloc((size_t)wanted * size) : NULL;
    if (!room)
        PyErr_NoMemory();
    return room;
}

static double half_value(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -value : value;
}

/* Element i of a floating array of one axis. */
static double floating_at(const struct array *array, int64_t i)
{
    const char *place = (const char *)array->data + i * array->stride[0] * (array->bits / 8);
    if (array->kind == ARRAY_FLOAT && array->bits == 64) {
        double value;
        memcpy(&value, place, sizeof value);
        return value;
    }
    if (array->kind == ARRAY_FLOAT && array->bits == 32) {
        float value;
        memcpy(&value, place, sizeof value);
        return value;
    }
    uint16_t word;
    memcpy(&word, place, sizeof word);
    if (array->kind == ARRAY_FLOAT)
        return half_value(word);
    uint32_t bits = (uint32_t)word << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool copy_floats(const struct array *array, float *floats)
{
    if (array->kind != ARRAY_FLOAT && array->kind != ARRAY_BFLOAT) {
        PyErr_Format(PyExc_TypeError, "%s must hold floating numbers", array->name);
        return false;
    }
    for (int64_t i = 0; i < array->shape[0]; i++)
        if (!numbers_round(floating_at(array, i), array->name, &floats[i]))
            return false;
    return true;
}

float *numbers_floats(PyObject *object, const char *name, int64_t heads)
{
    struct array array;
    if (!open_numbers(&array, object, name, heads))
        return NULL;
    float *floats = make_room(heads, sizeof *floats);
    bool copied = floats && copy_floats(&array, floats);
    array_close(&array);
    if (copied)
        return floats;
    free(floats);
    return NULL;
}

static bool integer_at(const struct array *array, int64_t i, int64_t *value)
{
    const char *place = (const char *)array->data + i * array->stride[0] * (array->bits / 8);
    if (array->bits == 64) {
        memcpy(value, place, sizeof *value);
        return array->kind == ARRAY_SIGNED || *value >= 0;
    }
    int32_t word = 0;
    if (array->bits != 32)
        return false;
    memcpy(&word, place, sizeof word);
    *value = array->kind == ARRAY_SIGNED ? word : (int64_t)(uint32_t)word;
    return true;
}

static bool read_length_array(int64_t *lengths, PyObject *object, int64_t batch)
{
    struct array array;
    if (!open_numbers(&array, object, "key_lengths", batch))
        return false;
    bool fits = array.kind == ARRAY_SIGNED || array.kind == ARRAY_UNSIGNED;
    for (int64_t i = 0; fits && i < batch; i++)
        fits = integer_at(&array, i, &lengths[i]);
    if (!fits)
        PyErr_SetString(PyExc_TypeError, "key_lengths must hold integers of 32 or 64 bits");
    array_close(&array);
    return fits;
}

static bool read_length_list(int64_t *lengths, PyObject *object, int64_t batch)
{
    Py_ssize_t count = PySequence_Size(object);
    if (count < 0)
        return false;
    if (count != batch) {
        PyErr_Format(PyExc_ValueError,
                     "key_lengths has %zd numbers; it must have one a batch, %lld", count,
                     (long long)batch);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        long long length = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (length == -1 && PyErr_Occurred()) {
            bool large = PyErr_ExceptionMatches(PyExc_OverflowError);
            if (large || PyErr_ExceptionMatches(PyExc_TypeError))
                PyErr_Format(large ? PyExc_ValueError : PyExc_TypeError,
                             "key_lengths[%zd] is not an integer of 64 bits", i);
            return false;
        }
        lengths[i] = length;
    }
    return true;
}

int64_t *numbers_lengths(PyObject *object, int64_t batch)
{
    int64_t *lengths = make_room(batch, sizeof *lengths);
    if (!lengths)
        return NULL;
    bool list = PyList_Check(object) || PyTuple_Check(object);
    if (list ? read_length_list(lengths, object, batch) : read_length_array(lengths, object, batch))
        return lengths;
    free(lengths);
    return NULL;
}
