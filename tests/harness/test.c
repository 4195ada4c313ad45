#include "harness/test.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/guarded.h"

enum { TEXT_SIZE = 256, PRINTED_FAILURES = 8 };

static struct {
    char name[TEXT_SIZE];
    char context[TEXT_SIZE];
    char skip_reason[TEXT_SIZE];
    int failures;
    int cases; /* that test_takes_one_in was asked about */
    int tests;
    int failed_tests;
} state;

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };
static struct sigaction previous_actions[FATAL_SIGNALS];

static void write_text(const char *text)
{
    /* The only output that a signal handler may make; a failure cannot be told to anyone. */
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        return;
}

/* Names the test, then lets the fault happen again under whoever handled it before (a sanitizer's
 * report, or the end of the process). */
static void report_fatal_signal(int number)
{
    write_text("# fatal signal in: ");
    write_text(state.name);
    if (state.context[0]) {
        write_text(", ");
        write_text(state.context);
    }
    write_text("\n");
    for (int i = 0; i < FATAL_SIGNALS; i++)
        if (fatal_signals[i] == number)
            sigaction(number, &previous_actions[i], NULL);
}

static void watch_fatal_signals(void)
{
    static bool watching;
    if (watching)
        return;
    watching = true;
    struct sigaction action = {.sa_handler = report_fatal_signal};
    for (int i = 0; i < FATAL_SIGNALS; i++)
        sigaction(fatal_signals[i], &action, &previous_actions[i]);
}

void test_run(test_body *body, const void *argument, const char *name, ...)
{
    watch_fatal_signals();
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(state.name, sizeof state.name, name, arguments);
    va_end(arguments);
    state.context[0] = '\0';
    state.skip_reason[0] = '\0';
    state.failures = 0;
    state.cases = 0;
    body(argument);
    guarded_release_all();

    state.tests++;
    if (state.failures > PRINTED_FAILURES)
        printf("# %d more failures\n", state.failures - PRINTED_FAILURES);
    if (state.failures) {
        state.failed_tests++;
        printf("not ok %d - %s\n", state.tests, state.name);
    } else if (state.skip_reason[0]) {
        printf("ok %d - %s # SKIP %s\n", state.tests, state.name, state.skip_reason);
    } else {
        printf("ok %d - %s\n", state.tests, state.name);
    }
    fflush(stdout);
}

void test_skip(const char *reason, ...)
{
    va_list arguments;
    va_start(arguments, reason);
    vsnprintf(state.skip_reason, sizeof state.skip_reason, reason, arguments);
    va_end(arguments);
}

void test_context(const char *context, ...)
{
    va_list arguments;
    va_start(arguments, context);
    vsnprintf(state.context, sizeof state.context, context, arguments);
    va_end(arguments);
}

void test_fail(const char *file, int line, const char *message, ...)
{
    if (++state.failures > PRINTED_FAILURES)
        return;
    printf("# %s:%d: ", file, line);
    va_list arguments;
    va_start(arguments, message);
    vprintf(message, arguments);
    va_end(arguments);
    if (state.context[0])
        printf(" (%s)", state.context);
    printf("\n");
}

_Noreturn void test_bail_out(const char *reason)
{
    printf("Bail out! %s\n", reason);
    exit(1);
}

bool test_is_reduced(void)
{
    const char *value = getenv("ATTN_TEST_REDUCED");
    return value && *value && strcmp(value, "0") != 0;
}

bool test_takes_one_in(int n)
{
    return !test_is_reduced() || state.cases++ % n == 0;
}

int test_finish(void)
{
    printf("1..%d\n", state.tests);
    return state.failed_tests ? 1 : 0;
}

void test_check_equal(const char *file, int line, const char *what, long long actual,
                      long long expected)
{
    if (actual != expected)
        test_fail(file, line, "%s is %lld, expected %lld", what, actual, expected);
}

void test_check_contains(const char *file, int line, const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        test_fail(file, line, "\"%s\" does not say \"%s\"", text ? text : "(null)", part);
}
