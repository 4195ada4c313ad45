#include "text/array.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

void *array_grow(void *array, size_t count, size_t *capacity, size_t element_size)
{
    if (count < *capacity)
        return array;
    size_t larger = *capacity ? *capacity : FIRST_CAPACITY / 2;
    if (larger > SIZE_MAX / 2 / element_size)
        return NULL;
    larger *= 2;
    void *grown = realloc(array, larger * element_size);
    if (grown)
        *capacity = larger;
    return grown;
}
