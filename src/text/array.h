/* Arrays that grow by an element at a time. */
#ifndef ATTN_TEXT_ARRAY_H
#define ATTN_TEXT_ARRAY_H

#include <stddef.h>

/* The array, moved where it must be, with room for an element behind its `count`. NULL when there
 * is no memory: the array is then as it was. */
void *array_grow(void *array, size_t count, size_t *capacity, size_t element_size);

#endif
