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

/* Writes the message, cut to its size, with control characters replaced by '?' so that text from a
 * file cannot steer a terminal. error may be NULL. Always returns false, so that a caller can write
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
