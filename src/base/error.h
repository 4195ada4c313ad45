/* How everything below cmd/ reports a failure: one line of text that names the argument or file and
 * says what would be right. Nothing here prints.
 *
 * libattn's functions return an attn_status beside it; all other rooms return bool, true for
 * success. */
#ifndef ATTN_BASE_ERROR_H
#define ATTN_BASE_ERROR_H

#include <stdbool.h>

#include "attn.h"

enum { ATTN_ERROR_MESSAGE_SIZE = 512 };

struct attn_error {
    char message[ATTN_ERROR_MESSAGE_SIZE];
};

/* Writes the message, cut to its size: one line of valid UTF-8. Control characters (U+0080 to
 * U+009F among them), separators of lines, and bytes that are no part of a whole character, such as
 * what a cut leaves of one, are replaced by '?': text from a file may be any bytes and cannot steer
 * a terminal. error may be NULL. Always returns false, so that a caller can write
 * `return attn_error_set(error, …);`. */
bool attn_error_set(struct attn_error *error, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* The message of an allocation that failed. */
bool attn_error_memory(struct attn_error *error);

/* For functions that return attn_status. */
#define RETURN_IF(condition, error, status, ...)                                                   \
    do {                                                                                           \
        if (condition) {                                                                           \
            attn_error_set((error), __VA_ARGS__);                                                  \
            return (status);                                                                       \
        }                                                                                          \
    } while (0)

#endif
