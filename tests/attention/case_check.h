/* Checks of numbers against what a handed case expects of them. */
#ifndef ATTN_TESTS_ATTENTION_CASE_CHECK_H
#define ATTN_TESTS_ATTENTION_CASE_CHECK_H

#include <jansson.h>
#include <stddef.h>

/* The bound for one field: a number for all of them, one a field, or none: exact. */
double case_tolerance(const json_t *json, const char *field);

/* The numbers of a field, row-major; nothing where the case does not expect any. Places that it
 * lists as exact zeros have to be 0. */
void case_check_field(const json_t *json, const char *field, const double *actual, size_t count);
void case_check_floats(const json_t *json, const char *field, const float *actual, size_t count);

#endif
