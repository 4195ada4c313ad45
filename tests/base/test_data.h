/* Files under tests/data, which ATTN_TEST_DATA names. A test fails where one is not there. */
#ifndef ATTN_TESTS_TEST_DATA_H
#define ATTN_TESTS_TEST_DATA_H

#include <jansson.h>

/* The path of tests/data/NAME, newly allocated. */
char *test_data_path(const char *name);

/* tests/data/NAME, read as JSON; release with json_decref. An empty list or object fails the test:
 * a loop over it would compare nothing, and pass. */
json_t *test_data_json(const char *name);

#endif
