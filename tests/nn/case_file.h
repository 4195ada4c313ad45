/* What is in the JSON under tests/data: the handed cases and their tensors. A test fails where
 * something is not there. */
#ifndef ATTN_TESTS_CASE_FILE_H
#define ATTN_TESTS_CASE_FILE_H

#include <jansson.h>
#include <stddef.h>

#include "test_data.h"

/* tests/data/NAME as bytes, newly allocated. */
void *case_file_bytes(const char *name, size_t *size);

/* The case of this name in a file's "cases". */
const json_t *case_find(const json_t *file, const char *name);

/* object[first][second], or object[first] where second is NULL. */
const json_t *case_field(const json_t *object, const char *first, const char *second);

/* The numbers of {"shape": …, "data": […]}, newly allocated; *count may be NULL. */
float *case_numbers(const json_t *tensor, size_t *count);

/* Every |actual − expected| ≤ tolerance; the message tells the worst place. */
void assert_near(const float *actual, const float *expected, size_t count, double tolerance);

#endif
