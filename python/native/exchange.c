#include "exchange.h"

#include <string.h>

/* Asking a type for an attribute that it lacks takes longer than a small call: answers are kept. */
enum { KNOWN_TYPES = 8 };
static struct {
    PyTypeObject *type; /* a reference: its address is not another type's */
    const struct dlpack_exchange *exchange;
} known[KNOWN_TYPES];
static int next_known;

static bool ask(PyTypeObject *type, const struct dlpack_exchange **exchange)
{
    *exchange = NULL;
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    if (!capsule) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return false;
        PyErr_Clear();
        return true;
    }
    const struct dlpack_exchange *offered = NULL;
    if (PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        offered = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule);
    while (offered && offered->version.major != DLPACK_MAJOR)
        offered = offered->older;
    if (offered && offered->borrow)
        *exchange = offered;
    return true;
}

bool exchange_of(PyTypeObject *type, const struct dlpack_exchange **exchange)
{
    for (int i = 0; i < KNOWN_TYPES; i++)
        if (known[i].type == type) {
            *exchange = known[i].exchange;
            return true;
        }
    if (!ask(type, exchange))
        return false;
    PyTypeObject *forgotten = known[next_known].type;
    known[next_known].type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    known[next_known].exchange = *exchange;
    next_known = (next_known + 1) % KNOWN_TYPES;
    Py_XDECREF((PyObject *)forgotten);
    return true;
}

static void set_error(void *user, const char *kind, const char *message)
{
    (void)user;
    PyGILState_STATE state = PyGILState_Ensure();
    bool memory = strcmp(kind, "MemoryError") == 0;
    PyErr_Format(memory ? PyExc_MemoryError : PyExc_RuntimeError, "%.200s", message);
    PyGILState_Release(state);
}

static struct dlpack_type dlpack_type_of(attn_type type)
{
    switch (type) {
    case ATTN_F64:
        return (struct dlpack_type){DLPACK_FLOAT, 64, 1};
    case ATTN_F16:
        return (struct dlpack_type){DLPACK_FLOAT, 16, 1};
    case ATTN_BF16:
        return (struct dlpack_type){DLPACK_BFLOAT, 16, 1};
    case ATTN_I32:
        return (struct dlpack_type){DLPACK_INT, 32, 1};
    default:
        return (struct dlpack_type){DLPACK_FLOAT, 32, 1};
    }
}

PyObject *exchange_make(const struct dlpack_exchange *exchange, attn_type type, int axes,
                        const int64_t *shape)
{
    int64_t sizes[4];
    for (int i = 0; i < axes; i++)
        sizes[i] = shape[i];
    struct dlpack_tensor like = {
        .device_type = DLPACK_CPU, .axes = axes, .type = dlpack_type_of(type), .shape = sizes};
    struct dlpack_managed *managed = NULL;
    if (exchange->allocate(&like, &managed, NULL, set_error) != 0)
        return NULL;
    void *object = NULL;
    if (exchange->object_from_managed(managed, &object) != 0)
        return NULL;
    return object;
}
