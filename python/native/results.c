#include "results.h"

#include "exchange.h"

static PyObject *numpy_empty, *numpy_types[ATTN_I32 + 1];

bool results_prepare(void)
{
    static const struct {
        attn_type type;
        const char *name;
    } types[] = {
        {ATTN_F32, "float32"}, {ATTN_F64, "float64"}, {ATTN_F16, "float16"}, {ATTN_I32, "int32"}};
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (!numpy)
        return false;
    PyObject *dtype = PyObject_GetAttrString(numpy, "dtype");
    /* A module that is imported anew finds them here. */
    bool prepared =
        dtype && (numpy_empty || (numpy_empty = PyObject_GetAttrString(numpy, "empty")));
    for (size_t i = 0; prepared && i < sizeof types / sizeof *types; i++) {
        PyObject **place = &numpy_types[types[i].type];
        prepared = *place || (*place = PyObject_CallFunction(dtype, "s", types[i].name));
    }
    Py_XDECREF(dtype);
    Py_DECREF(numpy);
    return prepared;
}

static PyObject *make_for_numpy(attn_type type, int axes, const int64_t *shape)
{
    PyObject *sizes = PyTuple_New(axes);
    if (!sizes)
        return NULL;
    for (int i = 0; i < axes; i++) {
        PyObject *size = PyLong_FromLongLong(shape[i]);
        if (!size || PyTuple_SetItem(sizes, i, size) != 0) {
            Py_DECREF(sizes);
            return NULL;
        }
    }
    PyObject *made = PyObject_CallFunctionObjArgs(numpy_empty, sizes, numpy_types[type], NULL);
    Py_DECREF(sizes);
    return made;
}

/* NumPy has no bfloat16. */
static PyObject *make(const struct array *q, attn_type type, int axes, const int64_t *shape)
{
    if (q->exchange)
        return exchange_make(q->exchange, type, axes, shape);
    return make_for_numpy(type == ATTN_BF16 ? ATTN_F32 : type, axes, shape);
}

bool result_open(struct result *result, PyObject *object, const char *name, const struct array *q,
                 attn_type type, int axes, const int64_t shape[ARRAY_MAX_AXES])
{
    *result = (struct result){0};
    result->object =
        object ? Py_NewRef(object) : make(q, type, axes, shape + ARRAY_MAX_AXES - axes);
    if (!result->object || !array_open_output(&result->array, result->object, name)) {
        result_close(result);
        return false;
    }
    if (result->array.axes != axes) {
        PyErr_Format(PyExc_ValueError, "%s has %d axes; it must have %d", name, result->array.axes,
                     axes);
        result_close(result);
        return false;
    }
    /* Keys are the one result of integers. */
    if (type == ATTN_I32) {
        struct array as_float = result->array;
        as_float.kind = ARRAY_FLOAT;
        array_tensor(&as_float, &result->tensor);
        result->tensor.type = ATTN_I32;
        return true;
    }
    if (array_tensor(&result->array, &result->tensor))
        return true;
    result_close(result);
    return false;
}

void result_close(struct result *result)
{
    array_close(&result->array);
    Py_CLEAR(result->object);
    *result = (struct result){0};
}

PyObject *result_take(struct result *result)
{
    PyObject *object = result->object;
    result->object = NULL;
    return object;
}
