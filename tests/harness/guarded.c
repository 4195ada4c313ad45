/* MAP_ANONYMOUS and MAP_NORESERVE are not in POSIX 2008. */
#define _DEFAULT_SOURCE

#include "harness/guarded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/test.h"

enum { PANEL_ALIGNMENT = 64, UNTOUCHED = 0xA5 };

struct buffer {
    struct buffer *next;
    unsigned char *mapping;
    size_t mapped;
    unsigned char *usable; /* between the guard pages; NULL for a bare address space */
    size_t usable_size;
    unsigned char *data;
    size_t size;
};

static struct buffer *buffers;

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static struct buffer *map_buffer(size_t bytes)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);
    void *mapping =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!buffer || mapping == MAP_FAILED)
        test_bail_out("no memory for a guarded buffer");
    buffer->mapping = mapping;
    buffer->mapped = bytes;
    buffer->next = buffers;
    buffers = buffer;
    return buffer;
}

void *guarded_bytes(size_t bytes, size_t alignment, enum guard_side side)
{
    size_t page = page_size();
    size_t usable = (bytes + page) / page * page;
    struct buffer *buffer = map_buffer(usable + 2 * page);
    buffer->usable = buffer->mapping + page;
    buffer->usable_size = usable;
    if (mprotect(buffer->usable, usable, PROT_READ | PROT_WRITE) != 0)
        test_bail_out("no memory for a guarded buffer");
    memset(buffer->usable, UNTOUCHED, usable);
    size_t start = side == GUARD_BEFORE ? 0 : (usable - bytes) / alignment * alignment;
    buffer->data = buffer->usable + start;
    buffer->size = bytes;
    return buffer->data;
}

static float *floats_of_nan(size_t count, size_t alignment, enum guard_side side)
{
    float *floats = guarded_bytes(count * sizeof *floats, alignment, side);
    const uint32_t bits = GUARDED_NAN_BITS;
    for (size_t i = 0; i < count; i++)
        memcpy(&floats[i], &bits, sizeof bits);
    return floats;
}

float *guarded_floats(size_t count, enum guard_side side)
{
    return floats_of_nan(count, sizeof(float), side);
}

float *guarded_panel(size_t count, enum guard_side side)
{
    return floats_of_nan(count, PANEL_ALIGNMENT, side);
}

double *guarded_doubles(size_t count)
{
    return guarded_bytes(count * sizeof(double), sizeof(double), GUARD_BEHIND);
}

void *guarded_address_space(size_t bytes)
{
    return map_buffer(bytes)->mapping;
}

void guarded_touch(void *begin, size_t bytes)
{
    size_t page = page_size();
    uintptr_t first = (uintptr_t)begin / page * page;
    uintptr_t end = ((uintptr_t)begin + bytes + page - 1) / page * page;
    unsigned char *start = (unsigned char *)begin - ((uintptr_t)begin - first);
    if (mprotect(start, (size_t)(end - first), PROT_READ | PROT_WRITE) != 0)
        test_bail_out("no memory for a page of an address space");
}

static void check_untouched(const unsigned char *bytes, size_t count, const char *where)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != UNTOUCHED) {
            test_fail(__FILE__, __LINE__, "a byte %s a buffer was written", where);
            return;
        }
    }
}

void guarded_release_all(void)
{
    while (buffers) {
        struct buffer *buffer = buffers;
        buffers = buffer->next;
        if (buffer->usable) {
            size_t before = (size_t)(buffer->data - buffer->usable);
            check_untouched(buffer->usable, before, "before");
            check_untouched(buffer->data + buffer->size,
                            buffer->usable_size - before - buffer->size, "behind");
        }
        munmap(buffer->mapping, buffer->mapped);
        free(buffer);
    }
}
