#include "allocation_sweep.h"

#include <stdlib.h>

#include "cmocka_test.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool counting;
static size_t until_failure;

/* Whether the allocation that comes now is the one that fails. */
static bool fails_now(void)
{
    return counting && until_failure-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails_now() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return fails_now() ? NULL : __real_strndup(text, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

size_t allocation_sweep(bool (*attempt)(void *user, struct attn_error *error), void *user)
{
    for (size_t n = 0;; n++) {
        struct attn_error error = {""};
        until_failure = n;
        counting = true;
        bool done = attempt(user, &error);
        counting = false;
        bool failed = until_failure > n; /* it wrapped below 0 */
        if (!failed) {
            assert_true(done);
            return n;
        }
        if (done)
            fail_msg("the failure of allocation %zu went unnoticed", n);
        if (error.message[0] == '\0')
            fail_msg("the failure of allocation %zu was not told", n);
    }
}
