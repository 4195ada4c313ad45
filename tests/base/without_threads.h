/* ThreadSanitizer of some compilers ends a process that makes threads after fork. */
#ifndef ATTN_TESTS_WITHOUT_THREADS_H
#define ATTN_TESTS_WITHOUT_THREADS_H

#define WITHOUT_THREADS_AFTER_FORK 0

#if defined(__SANITIZE_THREAD__)
#undef WITHOUT_THREADS_AFTER_FORK
#define WITHOUT_THREADS_AFTER_FORK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef WITHOUT_THREADS_AFTER_FORK
#define WITHOUT_THREADS_AFTER_FORK 1
#endif
#endif

#endif
