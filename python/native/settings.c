#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

/* Numbers of one axis, `count` of them, as an array. */
static bool open_numbers(struct array *array, PyObject *object, const char *name, int64_t count)
{
    if (!array_open(array, object, name))
        return false;
    if (array->axes == 1 && array->shape[0] == count)
        return true;
    if (array->axes == 1)
        PyErr_Format(PyExc_ValueError, "%s has length %lld; it must have %lld", name,
                     (long long)array->shape[0], (long long)count);
    else
        PyErr_Format(PyExc_ValueError, "%s has %d axes; it must have one, of length %lld", name,
                     array->axes, (long long)count);
    array_close(array);
    return false;
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

/* A copy of a number a head, as floats; NULL with an exception set. */
static float *read_floats(const struct settings *settings, PyObject *object, const char *name,
                          int64_t heads)
{
    struct array array;
    if (!settings_check_gradient(settings, object, name) ||
        !open_numbers(&array, object, name, heads))
        return NULL;
    float *floats = NULL;
    if (array.kind != ARRAY_FLOAT && array.kind != ARRAY_BFLOAT)
        PyErr_Format(PyExc_TypeError, "%s must hold floating numbers", name);
    else if (!(floats = malloc((size_t)(heads > 0 ? heads : 1) * sizeof *floats)))
        PyErr_NoMemory();
    else
        for (int64_t i = 0; i < heads; i++)
            floats[i] = (float)floating_at(&array, i);
    array_close(&array);
    return floats;
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
            PyObject *kind =
                PyErr_ExceptionMatches(PyExc_OverflowError) ? PyExc_ValueError : PyExc_TypeError;
            PyErr_Format(kind, "key_lengths[%zd] is not an integer of 64 bits", i);
            return false;
        }
        lengths[i] = length;
    }
    return true;
}

static int64_t *read_lengths(PyObject *object, int64_t batch)
{
    int64_t *lengths = malloc((size_t)(batch > 0 ? batch : 1) * sizeof *lengths);
    if (!lengths) {
        PyErr_NoMemory();
        return NULL;
    }
    bool list = PyList_Check(object) || PyTuple_Check(object);
    if (list ? read_length_list(lengths, object, batch) : read_length_array(lengths, object, batch))
        return lengths;
    free(lengths);
    return NULL;
}

static bool read_float(PyObject *object, const char *name, float *value)
{
    double number = PyFloat_AsDouble(object);
    if (number == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s is a %R; it must be a number", name,
                         (PyObject *)Py_TYPE(object));
        else if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "%s is out of range", name);
        return false;
    }
    *value = (float)number;
    return true;
}

/* NaN is libattn's word for a scale that is not given; here None is. */
static bool read_scale(PyObject *object, float *scale)
{
    if (!read_float(object, "scale", scale))
        return false;
    if (!isnan(*scale))
        return true;
    PyErr_SetString(PyExc_ValueError,
                    "scale is NaN; it must be a number, or None for 1/sqrt(d_qk)");
    return false;
}

bool settings_read_integer(PyObject *object, const char *name, int64_t *value)
{
    PyObject *index = PyNumber_Index(object);
    if (!index) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s is a %R; it must be an integer", name,
                         (PyObject *)Py_TYPE(object));
        return false;
    }
    long long number = PyLong_AsLongLong(index);
    Py_DECREF(index);
    if (number == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "%s is out of range", name);
        return false;
    }
    if (number > ATTN_POSITION_LIMIT || number < -ATTN_POSITION_LIMIT) {
        PyErr_Format(PyExc_ValueError, "%s is %lld; at most 2**60 either way is taken", name,
                     number);
        return false;
    }
    *value = number;
    return true;
}

static bool read_align(PyObject *object, attn_params *params)
{
    if (PyUnicode_Check(object)) {
        if (PyUnicode_CompareWithASCIIString(object, "top-left") == 0) {
            params->alignment = ATTN_ALIGN_TOP_LEFT;
            return true;
        }
        if (PyUnicode_CompareWithASCIIString(object, "bottom-right") == 0) {
            params->alignment = ATTN_ALIGN_BOTTOM_RIGHT;
            return true;
        }
        PyErr_Format(PyExc_ValueError,
                     "align is %R; it must be \"top-left\", \"bottom-right\" or an offset", object);
        return false;
    }
    params->alignment = ATTN_ALIGN_OFFSET;
    return settings_read_integer(object, "align", &params->offset);
}

/* One side of a window: a borrowed number, or None. */
static bool read_side(PyObject *pair, Py_ssize_t place, int64_t *side)
{
    PyObject *object = PySequence_GetItem(pair, place);
    if (!object)
        return false;
    bool read = true;
    if (object == Py_None)
        *side = ATTN_WINDOW_OPEN;
    else
        read = settings_read_integer(
            object, place == 0 ? "window's left side" : "window's right side", side);
    Py_DECREF(object);
    return read;
}

static bool read_window(PyObject *object, attn_params *params)
{
    if ((PyTuple_Check(object) || PyList_Check(object)) && PySequence_Size(object) == 2)
        return read_side(object, 0, &params->window_left) &&
               read_side(object, 1, &params->window_right);
    PyErr_Format(PyExc_TypeError,
                 "window is %R; it must be (left, right): numbers of keys, or None for no limit",
                 object);
    return false;
}

static bool read_precision(PyObject *object, attn_params *params)
{
    bool is_text = PyUnicode_Check(object);
    if (is_text && PyUnicode_CompareWithASCIIString(object, "exact") == 0)
        params->precision = ATTN_PRECISION_EXACT;
    else if (is_text && PyUnicode_CompareWithASCIIString(object, "bf16") == 0)
        params->precision = ATTN_PRECISION_BF16;
    else {
        PyErr_Format(PyExc_ValueError, "precision is %R; it must be \"exact\" or \"bf16\"", object);
        return false;
    }
    return true;
}

static bool read_seed(PyObject *object, uint64_t *seed)
{
    PyObject *index = PyNumber_Index(object);
    if (index) {
        *seed = PyLong_AsUnsignedLongLong(index);
        Py_DECREF(index);
        if (!PyErr_Occurred())
            return true;
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError, "dropout_seed must be an integer in 0..2**64 - 1");
    return false;
}

bool settings_read_threads(PyObject *object, int *threads)
{
    int64_t number;
    if (!settings_read_integer(object, "threads", &number))
        return false;
    if (number < 0 || number > 4096) {
        PyErr_SetString(PyExc_ValueError, "threads must be in 0..4096; 0 is the default");
        return false;
    }
    *threads = (int)number;
    return true;
}

bool settings_read_truth(PyObject *object, const char *name, int *truth)
{
    *truth = PyObject_IsTrue(object);
    if (*truth < 0 &&
        (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError)))
        PyErr_Format(PyExc_TypeError, "%s is a %R; it must be True or False", name,
                     (PyObject *)Py_TYPE(object));
    return *truth >= 0;
}

/* What is a number, a word or a pair. */
static bool read_plain(struct settings *settings, PyObject *const given[KEYWORD_COUNT])
{
    attn_params *params = &settings->params;
    int detach = 0;
    bool read =
        (!given[KEYWORD_CAUSAL] ||
         settings_read_truth(given[KEYWORD_CAUSAL], "causal", &params->causal)) &&
        (!given[KEYWORD_ALIGN] || read_align(given[KEYWORD_ALIGN], params)) &&
        (!given[KEYWORD_WINDOW] || read_window(given[KEYWORD_WINDOW], params)) &&
        (!given[KEYWORD_SCALE] || read_scale(given[KEYWORD_SCALE], &params->scale)) &&
        (!given[KEYWORD_SOFT_CAP] ||
         read_float(given[KEYWORD_SOFT_CAP], "soft_cap", &params->soft_cap)) &&
        (!given[KEYWORD_PRECISION] || read_precision(given[KEYWORD_PRECISION], params)) &&
        (!given[KEYWORD_DROPOUT] ||
         read_float(given[KEYWORD_DROPOUT], "dropout", &params->dropout)) &&
        (!given[KEYWORD_DROPOUT_SEED] ||
         read_seed(given[KEYWORD_DROPOUT_SEED], &params->dropout_seed)) &&
        (!given[KEYWORD_THREADS] ||
         settings_read_threads(given[KEYWORD_THREADS], &settings->threads)) &&
        (!given[KEYWORD_DETACH] || settings_read_truth(given[KEYWORD_DETACH], "detach", &detach));
    settings->detach = detach;
    return read;
}

static bool read_mask(struct settings *settings, PyObject *object)
{
    if (!array_open(&settings->mask, object, "mask") ||
        !array_tensor(&settings->mask, &settings->mask_tensor))
        return false;
    if (settings->mask_tensor.type == ATTN_BOOL)
        settings->params.keep = &settings->mask_tensor;
    else
        settings->params.bias = &settings->mask_tensor;
    return true;
}

bool settings_read(struct settings *settings, PyObject *const given[KEYWORD_COUNT], int64_t batch,
                   int64_t heads)
{
    *settings = (struct settings){0};
    attn_params_init(&settings->params);
    bool read =
        read_plain(settings, given) &&
        (!given[KEYWORD_MASK] || (settings_check_gradient(settings, given[KEYWORD_MASK], "mask") &&
                                  read_mask(settings, given[KEYWORD_MASK]))) &&
        (!given[KEYWORD_SINKS] ||
         (settings->sinks = read_floats(settings, given[KEYWORD_SINKS], "sinks", heads))) &&
        (!given[KEYWORD_ALIBI_SLOPES] ||
         (settings->alibi_slopes =
              read_floats(settings, given[KEYWORD_ALIBI_SLOPES], "alibi_slopes", heads))) &&
        (!given[KEYWORD_KEY_LENGTHS] ||
         (settings->key_lengths = read_lengths(given[KEYWORD_KEY_LENGTHS], batch)));
    settings->params.sinks = settings->sinks;
    settings->params.alibi_slopes = settings->alibi_slopes;
    settings->params.key_lengths = settings->key_lengths;
    if (!read)
        settings_close(settings);
    return read;
}

void settings_close(struct settings *settings)
{
    array_close(&settings->mask);
    free(settings->sinks);
    free(settings->alibi_slopes);
    free(settings->key_lengths);
    *settings = (struct settings){0};
}

bool settings_check_gradient(const struct settings *settings, PyObject *object, const char *name)
{
    const struct dlpack_exchange *exchange;
    if (settings->detach || !object)
        return true;
    if (!exchange_of(Py_TYPE(object), &exchange))
        return false;
    if (!exchange)
        return true;
    PyObject *wanted = PyObject_GetAttrString(object, "requires_grad");
    if (!wanted) {
        PyErr_Clear();
        return true;
    }
    int truth = PyObject_IsTrue(wanted);
    Py_DECREF(wanted);
    if (truth > 0)
        PyErr_Format(
            PyExc_ValueError,
            "%s requires a gradient, which is not followed here; call attn.torch.attention, or "
            "pass %s.detach()",
            name, name);
    return truth == 0;
}
