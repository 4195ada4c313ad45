/* A test harness that needs nothing but a C library, so that it builds for any target. Results go
 * to standard output in the Test Anything Protocol; every failed check is a line "# FILE:LINE: …".
 *
 * A body runs to its end whatever fails in it; the first failures of a test are printed, the rest
 * counted. A signal, such as the one of a guard page, is reported with the test's name and context.
 */
#ifndef ATTN_TESTS_HARNESS_TEST_H
#define ATTN_TESTS_HARNESS_TEST_H

#include <stdbool.h>

#if defined(__GNUC__)
#define TEST_FORMAT(text, first) __attribute__((format(printf, text, first)))
#else
#define TEST_FORMAT(text, first)
#endif

/* The elements of an array. */
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef void test_body(const void *argument);

/* Runs one test under a printf-like name; afterwards all buffers of harness/guarded.h are released.
 */
void test_run(test_body *body, const void *argument, const char *name, ...) TEST_FORMAT(3, 4);

/* Reports the running test as skipped, with the reason. The body returns by itself. */
void test_skip(const char *reason, ...) TEST_FORMAT(1, 2);

/* What the next checks are about, printed with each failure: a size, a seed. Ends with the test. */
void test_context(const char *context, ...) TEST_FORMAT(1, 2);

/* A failed check. */
void test_fail(const char *file, int line, const char *message, ...) TEST_FORMAT(3, 4);

/* Ends the program: for trouble of the test itself, such as no memory. */
_Noreturn void test_bail_out(const char *reason);

/* Whether ATTN_TEST_REDUCED asks for few and small problems, as under an emulator. */
bool test_is_reduced(void);

/* Whether a loop over many cases takes the next one: always, but where few are asked for the first
 * and each n-th after it. */
bool test_takes_one_in(int n);

/* Prints the plan. Returns main's exit status: 0 iff no test failed. */
int test_finish(void);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            test_fail(__FILE__, __LINE__, "not true: %s", #condition);                             \
    } while (0)

/* Whole numbers, enumerations and booleans. */
#define CHECK_EQUAL(actual, expected)                                                              \
    test_check_equal(__FILE__, __LINE__, #actual, (long long)(actual), (long long)(expected))
void test_check_equal(const char *file, int line, const char *what, long long actual,
                      long long expected);

/* `text` holds `part`. */
#define CHECK_CONTAINS(text, part) test_check_contains(__FILE__, __LINE__, text, part)
void test_check_contains(const char *file, int line, const char *text, const char *part);

#endif
