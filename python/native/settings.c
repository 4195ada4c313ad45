#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "numbers.h"

static bool read_number(PyObject *object, const char *name, double *number)
{
    *number = PyFloat_AsDouble(object);
    if (*number == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s is a %R; it must be a number", name,
                         (PyObject *)Py_TYPE(object));
        else if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "%s is out of range", name);
        return false;
    }
    return true;
}

static bool read_float(PyObject *object, const char *name, float *value)
{
    double number;
    return read_number(object, name, &number) && numbers_round(number, name, value);
}

/* 0 is no cap at all, which is not what a tiny one means. */
static bool read_soft_cap(PyObject *object, float *soft_cap)
{
    double number;
    if (!read_number(object, "soft_cap", &number) || !numbers_round(number, "soft_cap", soft_cap))
        return false;
    if (*soft_cap != 0 || number == 0)
        return true;
    PyErr_SetString(PyExc_ValueError, "soft_cap is so small that float32 has 0 for it, no cap");
    return false;
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
                     "align is %.80R; it must be \"top-left\", \"bottom-right\" or an offset",
                     object);
        return false;
    }
    params->alignment = ATTN_ALIGN_OFFSET;
    return settings_read_integer(object, "align", &params->offset);
}

/* One side of a window: a number of keys, or None. */
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
    if (PyTuple_Check(object) || PyList_Check(object)) {
        Py_ssize_t sides = PySequence_Size(object);
        if (sides == 2)
            return read_side(object, 0, &params->window_left) &&
                   read_side(object, 1, &params->window_right);
        if (sides >= 0)
            PyErr_Format(PyExc_TypeError, "window has %zd sides; it must be (left, right)", sides);
        return false;
    }
    PyErr_Format(PyExc_TypeError,
                 "window is a %R; it must be (left, right): numbers of keys, or None for no limit",
                 (PyObject *)Py_TYPE(object));
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
        PyErr_Format(is_text ? PyExc_ValueError : PyExc_TypeError,
                     "precision is %.80R; it must be \"exact\" or \"bf16\"",
                     is_text ? object : (PyObject *)Py_TYPE(object));
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
    PyObject *kind = PyErr_ExceptionMatches(PyExc_TypeError)       ? PyExc_TypeError
                     : PyErr_ExceptionMatches(PyExc_OverflowError) ? PyExc_ValueError
                                                                   : NULL;
    if (kind)
        PyErr_SetString(kind, "dropout_seed must be an integer in 0..2**64 - 1");
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
        (!given[KEYWORD_SOFT_CAP] || read_soft_cap(given[KEYWORD_SOFT_CAP], &params->soft_cap)) &&
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

static bool read_floats(const struct settings *settings, PyObject *object, const char *name,
                        int64_t heads, float **floats)
{
    if (!object)
        return true;
    if (!settings_check_tensor(settings, object, name))
        return false;
    *floats = numbers_floats(object, name, heads);
    return *floats;
}

bool settings_read(struct settings *settings, PyObject *const given[KEYWORD_COUNT], int64_t batch,
                   int64_t heads)
{
    *settings = (struct settings){0};
    attn_params_init(&settings->params);
    bool read =
        read_plain(settings, given) &&
        (!given[KEYWORD_MASK] || (settings_check_tensor(settings, given[KEYWORD_MASK], "mask") &&
                                  read_mask(settings, given[KEYWORD_MASK]))) &&
        read_floats(settings, given[KEYWORD_SINKS], "sinks", heads, &settings->sinks) &&
        read_floats(settings, given[KEYWORD_ALIBI_SLOPES], "alibi_slopes", heads,
                    &settings->alibi_slopes) &&
        (!given[KEYWORD_KEY_LENGTHS] ||
         (settings->key_lengths = numbers_lengths(given[KEYWORD_KEY_LENGTHS], batch)));
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

bool settings_check_tensor(const struct settings *settings, PyObject *object, const char *name)
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
        bool without = PyErr_ExceptionMatches(PyExc_AttributeError);
        if (without)
            PyErr_Clear();
        return without && array_check_sign(object, name);
    }
    int truth = PyObject_IsTrue(wanted);
    Py_DECREF(wanted);
    if (truth > 0)
        PyErr_Format(
            PyExc_ValueError,
            "%s requires a gradient, which is not followed here; call attn.torch.attention, or pass %s.detach()",
            name, name);
    return truth == 0 && array_check_sign(object, name);
}
