/* dlpack.h: the part of DLPack's binary interface that is used here (DLPack 1.3, dmlc; the structs'
 * layout is promised there for a whole major version). */
#ifndef ATTN_PYTHON_DLPACK_H
#define ATTN_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_CPU = 1 };

enum dlpack_code {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6
};

/* A bit of dlpack_managed.flags. */
#define DLPACK_READ_ONLY UINT64_C(1)

struct dlpack_version {
    uint32_t major, minor;
};

struct dlpack_type {
    uint8_t code, bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    int32_t device_type, device;
    int32_t axes;
    struct dlpack_type type;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: packed row by row */
    uint64_t byte_offset;
};

/* What a capsule "dltensor_versioned" holds; whoever takes it renames it "used_dltensor_versioned"
 * and calls the deleter in the end. */
struct dlpack_managed {
    struct dlpack_version version;
    void *owner;
    void (*release)(struct dlpack_managed *);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

/* The same of a capsule "dltensor", from before version 1. */
struct dlpack_managed_old {
    struct dlpack_tensor tensor;
    void *owner;
    void (*release)(struct dlpack_managed_old *);
};

typedef void dlpack_set_error(void *user, const char *kind, const char *message);

/* The functions that a type offers in its attribute __dlpack_c_exchange_api__, a capsule
 * "dlpack_exchange_api". Each returns 0, or −1 with a Python exception set, or set_error called. */
struct dlpack_exchange {
    struct dlpack_version version;
    struct dlpack_exchange *older;
    int (*allocate)(struct dlpack_tensor *like, struct dlpack_managed **made, void *user,
                    dlpack_set_error *set_error);
    int (*managed_from_object)(void *object, struct dlpack_managed **made);
    int (*object_from_managed)(struct dlpack_managed *taken, void **object);
    /* Lends what `object` holds: valid as long as that is. May be NULL. */
    int (*borrow)(void *object, struct dlpack_tensor *tensor);
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
};

#endif
