#include "model/parameters.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { BEGIN_MULTIPLE = ATTN_ALIGNMENT / sizeof(float) };

/* Room for one more item; doubles where there is none. */
static bool grow(struct parameters *parameters)
{
    size_t count = parameters->item_count;
    if ((count & (count - 1)) != 0) /* a power of two is full, and so is 0 */
        return true;
    struct parameter *items =
        realloc(parameters->items, (count > 0 ? 2 * count : 1) * sizeof *parameters->items);
    if (!items)
        return false;
    parameters->items = items;
    return true;
}

bool parameters_add(struct parameters *parameters, const char *name, int rank, const int64_t *shape,
                    int64_t *begin, struct attn_error *error)
{
    if (strlen(name) >= PARAMETER_NAME_SIZE)
        return attn_error_set(error, "parameter %.160s: the name has more than %d bytes", name,
                              PARAMETER_NAME_SIZE - 1);
    struct parameter item = {.rank = rank, .begin = parameters->count, .count = 1};
    memcpy(item.name, name, strlen(name) + 1);
    int64_t end, bytes;
    bool fits = true;
    for (int i = 0; fits && i < rank; i++) {
        item.shape[i] = shape[i];
        fits = attn_checked_multiply(item.count, shape[i], &item.count);
    }
    if (!fits || !attn_checked_add(item.begin, item.count, &end) ||
        !attn_checked_add(end, BEGIN_MULTIPLE - 1, &end) ||
        !attn_checked_multiply(end, (int64_t)sizeof(float), &bytes) || (uint64_t)bytes > SIZE_MAX)
        return attn_error_set(error, "parameter %s: the model is too large for this machine", name);
    if (!grow(parameters))
        return attn_error_memory(error);
    parameters->items[parameters->item_count++] = item;
    parameters->count = end / BEGIN_MULTIPLE * BEGIN_MULTIPLE;
    *begin = item.begin;
    return true;
}

/* [count] zeros, NULL without memory. */
static float *allocate(int64_t count)
{
    const size_t bytes = (size_t)count * sizeof(float); /* checked in parameters_add */
    float *numbers = attn_allocator_default.allocate(NULL, bytes, ATTN_ALIGNMENT);
    if (numbers)
        memset(numbers, 0, bytes);
    return numbers;
}

bool parameters_allocate(struct parameters *parameters, struct attn_error *error)
{
    parameters->values = allocate(parameters->count);
    return parameters->values || attn_error_memory(error);
}

bool parameters_want_gradients(struct parameters *parameters, struct attn_error *error)
{
    if (!parameters->gradients)
        parameters->gradients = allocate(parameters->count);
    return parameters->gradients || attn_error_memory(error);
}

void parameters_release(struct parameters *parameters)
{
    attn_allocator_default.release(NULL, parameters->gradients);
    attn_allocator_default.release(NULL, parameters->values);
    free(parameters->items);
    *parameters = (struct parameters){0};
}
