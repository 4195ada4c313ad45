/* cmocka, with the headers that it wants before itself. */
#ifndef ATTN_TESTS_CMOCKA_TEST_H
#define ATTN_TESTS_CMOCKA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

/* The error's message holds these words; shows both where it does not. */
void assert_message(const struct attn_error *error, const char *words);

/* Ends the test as skipped, with the reason in the form that scripts/run_tests.py reads. */
void skip_because(const char *reason);

#endif
