#include "array.h"

#include "exchange.h"

static bool refuse_type(const char *name, const char *held)
{
    PyErr_Format(
        PyExc_TypeError,
        "%s holds %s; taken are float16, bfloat16, float32 and float64 (masks: bool too), in "
        "this machine's byte order",
        name, held);
    return false;
}

static bool refuse_format(const char *name, const char *format)
{
    char held[64];
    PyOS_snprintf(held, sizeof held, "elements of format \"%.20s\"", format);
    return refuse_type(name, held);
}

/* Sets kind and bits from a format of Python's struct module. */
static bool read_format(struct array *array, const char *format, Py_ssize_t size)
{
    const char *code = format ? format : "B";
    if (*code == '@' || *code == '=' || *code == '<')
        code++;
    if (code[0] == '\0' || code[1] != '\0')
        return refuse_format(array->name, format);
    switch (*code) {
    case 'e':
    case 'f':
    case 'd':
        array->kind = ARRAY_FLOAT;
        break;
    case '?':
        array->kind = ARRAY_BOOL;
        break;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        array->kind = ARRAY_SIGNED;
        break;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        array->kind = ARRAY_UNSIGNED;
        break;
    default:
        return refuse_format(array->name, format);
    }
    array->bits = (int)size * 8;
    return true;
}

static bool refuse_axes(const char *name, long axes)
{
    PyErr_Format(PyExc_ValueError, "%s has %ld axes; at most %d are taken", name, axes,
                 ARRAY_MAX_AXES);
    return false;
}

/* Addresses must be those of whole elements: libattn counts in them. */
static bool check_alignment(const struct array *array)
{
    uintptr_t bytes = (uintptr_t)array->bits / 8;
    for (int i = 0; i < array->axes; i++)
        if (array->shape[i] == 0)
            return true;
    if ((uintptr_t)array->data % bytes == 0)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s begins at an address that is not a multiple of its %d bytes; pass a copy",
                 array->name, (int)bytes);
    return false;
}

/* Row by row. False with an exception where the array is larger than memory can be. */
static bool pack_strides(struct array *array, const int64_t *shape)
{
    int64_t packed = 1;
    for (int i = array->axes - 1; i >= 0; i--) {
        array->shape[i] = shape[i];
        array->stride[i] = packed;
        if (shape[i] > 0 && packed > INT64_MAX / 16 / shape[i]) {
            PyErr_Format(PyExc_ValueError, "%s has a shape of more elements than memory has bytes",
                         array->name);
            return false;
        }
        packed *= shape[i] > 0 ? shape[i] : 1;
    }
    return true;
}

static bool open_buffer(struct array *array, PyObject *object)
{
    if (PyObject_GetBuffer(object, &array->buffer, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        /* NumPy's ValueError speaks of buffers, not of the argument. */
        if (PyErr_ExceptionMatches(PyExc_ValueError)) {
            PyErr_Clear();
            return refuse_type(array->name, "what is not numbers");
        }
        return false;
    }
    array->has_buffer = true;
    const Py_buffer *buffer = &array->buffer;
    if (buffer->ndim > ARRAY_MAX_AXES)
        return refuse_axes(array->name, buffer->ndim);
    if (!read_format(array, buffer->format, buffer->itemsize))
        return false;
    array->data = buffer->buf;
    array->axes = buffer->ndim;
    array->writable = !buffer->readonly;
    /* ctypes leaves the strides out even where they are asked for. */
    if (!buffer->strides) {
        int64_t shape[ARRAY_MAX_AXES];
        for (int i = 0; i < buffer->ndim; i++)
            shape[i] = buffer->shape[i];
        return pack_strides(array, shape);
    }
    for (int i = 0; i < buffer->ndim; i++) {
        if (buffer->strides[i] % buffer->itemsize != 0) {
            PyErr_Format(PyExc_ValueError,
                         "%s has a stride of %zd bytes, which is not whole elements; pass a copy",
                         array->name, buffer->strides[i]);
            return false;
        }
        array->shape[i] = buffer->shape[i];
        array->stride[i] = buffer->strides[i] / buffer->itemsize;
    }
    return true;
}

static bool read_dlpack_type(struct array *array, struct dlpack_type type)
{
    static const struct {
        uint8_t code, bits;
        enum array_kind kind;
    } known[] = {
        {DLPACK_FLOAT, 32, ARRAY_FLOAT},   {DLPACK_FLOAT, 16, ARRAY_FLOAT},
        {DLPACK_FLOAT, 64, ARRAY_FLOAT},   {DLPACK_BFLOAT, 16, ARRAY_BFLOAT},
        {DLPACK_BOOL, 8, ARRAY_BOOL},      {DLPACK_INT, 64, ARRAY_SIGNED},
        {DLPACK_INT, 32, ARRAY_SIGNED},    {DLPACK_INT, 16, ARRAY_SIGNED},
        {DLPACK_INT, 8, ARRAY_SIGNED},     {DLPACK_UINT, 8, ARRAY_UNSIGNED},
        {DLPACK_UINT, 16, ARRAY_UNSIGNED}, {DLPACK_UINT, 32, ARRAY_UNSIGNED},
        {DLPACK_UINT, 64, ARRAY_UNSIGNED},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (type.lanes == 1 && type.code == known[i].code && type.bits == known[i].bits) {
            array->kind = known[i].kind;
            array->bits = type.bits;
            return true;
        }
    return refuse_type(array->name, type.code == DLPACK_COMPLEX ? "complex numbers"
                                                                : "elements of another kind");
}

/* A producer may say anything. */
static bool check_shape(const struct array *array, const struct dlpack_tensor *tensor)
{
    bool fits = tensor->axes == 0 || tensor->shape;
    for (int i = 0; fits && i < tensor->axes; i++)
        fits = tensor->shape[i] >= 0;
    if (!fits)
        PyErr_Format(PyExc_ValueError, "%s comes by DLPack without a shape of sizes of at least 0",
                     array->name);
    return fits;
}

static bool read_dlpack(struct array *array, const struct dlpack_tensor *tensor)
{
    if (tensor->device_type != DLPACK_CPU) {
        PyErr_Format(PyExc_ValueError, "%s is not in the CPU's memory; pass a copy that is",
                     array->name);
        return false;
    }
    if (tensor->axes > ARRAY_MAX_AXES || tensor->axes < 0)
        return refuse_axes(array->name, tensor->axes);
    if (!check_shape(array, tensor) || !read_dlpack_type(array, tensor->type))
        return false;
    array->data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    array->axes = tensor->axes;
    if (!tensor->strides)
        return pack_strides(array, tensor->shape);
    for (int i = 0; i < tensor->axes; i++) {
        array->shape[i] = tensor->shape[i];
        array->stride[i] = tensor->strides[i];
    }
    return true;
}

/* What its library said becomes a ValueError that names the argument, of one line. */
static bool refuse_borrowed(const char *name)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return false;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    PyObject *lines = text ? PyUnicode_Splitlines(text, 0) : NULL;
    PyObject *first = lines && PyList_Size(lines) > 0 ? PyList_GetItem(lines, 0) : NULL;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s must be a plain array in the CPU's memory: %V", name, first,
                 "its library does not show its memory");
    Py_XDECREF(lines);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return false;
}

static bool open_borrowed(struct array *array, PyObject *object)
{
    struct dlpack_tensor tensor;
    if (array->exchange->borrow(object, &tensor) != 0)
        return refuse_borrowed(array->name);
    array->writable = true;
    return read_dlpack(array, &tensor);
}

/* object.__dlpack__(max_version=(1, 3)), or without it where the object is of an older version. */
static PyObject *ask_for_capsule(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method)
        return NULL;
    PyObject *nothing = PyTuple_New(0);
    PyObject *version = Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR, 3);
    PyObject *capsule = nothing && version ? PyObject_Call(method, nothing, version) : NULL;
    if (!capsule && version && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(version);
    Py_XDECREF(nothing);
    Py_DECREF(method);
    return capsule;
}

static bool open_capsule(struct array *array, PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        array->managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0)
            return false;
        if (array->managed->version.major != DLPACK_MAJOR) {
            PyErr_Format(PyExc_BufferError, "%s comes by DLPack %u; version %d is taken",
                         array->name, array->managed->version.major, DLPACK_MAJOR);
            return false;
        }
        array->writable = !(array->managed->flags & DLPACK_READ_ONLY);
        return read_dlpack(array, &array->managed->tensor);
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        array->managed_old = PyCapsule_GetPointer(capsule, "dltensor");
        if (PyCapsule_SetName(capsule, "used_dltensor") != 0)
            return false;
        array->writable = true;
        return read_dlpack(array, &array->managed_old->tensor);
    }
    PyErr_Format(PyExc_TypeError, "%s: its __dlpack__ returns no capsule of DLPack", array->name);
    return false;
}

static bool open_dlpack(struct array *array, PyObject *object)
{
    PyObject *capsule = array_check_sign(object, array->name) ? ask_for_capsule(object) : NULL;
    if (!capsule)
        return false;
    bool opened = open_capsule(array, capsule);
    Py_DECREF(capsule);
    return opened;
}

static bool open_any(struct array *array, PyObject *object)
{
    if (array->exchange)
        return open_borrowed(array, object);
    if (PyObject_CheckBuffer(object))
        return open_buffer(array, object);
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return open_dlpack(array, object);
    PyErr_Format(
        PyExc_TypeError,
        "%s is a %R; it must be an array: NumPy's, or one with DLPack or the buffer protocol",
        array->name, (PyObject *)Py_TYPE(object));
    return false;
}

bool array_open(struct array *array, PyObject *object, const char *name)
{
    *array = (struct array){.name = name};
    if (!exchange_of(Py_TYPE(object), &array->exchange))
        return false;
    array->owner = Py_NewRef(object);
    if (open_any(array, object) && check_alignment(array))
        return true;
    array_close(array);
    return false;
}

bool array_check_sign(PyObject *object, const char *name)
{
    static PyObject *is_neg;
    if (!is_neg && !(is_neg = PyUnicode_InternFromString("is_neg")))
        return false;
    PyObject *answer = PyObject_CallMethodObjArgs(object, is_neg, NULL);
    if (!answer) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return false;
        /* Other libraries have no such views, and no such method; an error inside of it is one. */
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        bool has = PyObject_HasAttr((PyObject *)Py_TYPE(object), is_neg);
        PyErr_Restore(type, value, trace);
        if (!has)
            PyErr_Clear();
        return !has;
    }
    int negated = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    if (negated > 0)
        PyErr_Format(PyExc_ValueError, "%s is a negated view; pass %s.resolve_neg()", name, name);
    return negated == 0;
}

bool array_check_place(const struct array *array)
{
    struct dlpack_tensor tensor;
    if (!array->exchange)
        return true;
    if (array->exchange->borrow(array->owner, &tensor) != 0)
        return refuse_borrowed(array->name);
    void *data = tensor.data ? (char *)tensor.data + tensor.byte_offset : NULL;
    bool same = data == array->data && tensor.axes == array->axes;
    for (int i = 0; same && i < array->axes; i++)
        same = tensor.shape[i] == array->shape[i] &&
               (!tensor.strides || tensor.strides[i] == array->stride[i]);
    if (!same)
        PyErr_Format(PyExc_ValueError, "%s was changed while the call was prepared", array->name);
    return same;
}

bool array_open_output(struct array *array, PyObject *object, const char *name)
{
    if (!array_open(array, object, name))
        return false;
    if (array->writable)
        return true;
    PyErr_Format(PyExc_ValueError, "%s is read-only; it is to be written into", name);
    array_close(array);
    return false;
}

void array_close(struct array *array)
{
    /* A producer may run Python to release its memory, and that fails while an exception is on its
     * way. */
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (array->has_buffer)
        PyBuffer_Release(&array->buffer);
    if (array->managed && array->managed->release)
        array->managed->release(array->managed);
    if (array->managed_old && array->managed_old->release)
        array->managed_old->release(array->managed_old);
    Py_XDECREF(array->owner);
    PyErr_Restore(type, value, trace);
    *array = (struct array){0};
}

static bool type_of(const struct array *array, attn_type *type)
{
    switch (array->kind) {
    case ARRAY_FLOAT:
        *type = array->bits == 64 ? ATTN_F64 : array->bits == 32 ? ATTN_F32 : ATTN_F16;
        return true;
    case ARRAY_BFLOAT:
        *type = ATTN_BF16;
        return true;
    case ARRAY_BOOL:
        *type = ATTN_BOOL;
        return true;
    case ARRAY_SIGNED:
    case ARRAY_UNSIGNED:
        break;
    }
    return refuse_type(array->name, "integers");
}

bool array_tensor(const struct array *array, attn_tensor *tensor)
{
    *tensor = (attn_tensor){.data = array->data, .shape = {1, 1, 1, 1}};
    if (!type_of(array, &tensor->type))
        return false;
    int missing = ARRAY_MAX_AXES - array->axes;
    for (int i = 0; i < array->axes; i++) {
        tensor->shape[missing + i] = array->shape[i];
        tensor->stride[missing + i] = array->stride[i];
    }
    return true;
}
