/* The texts that a verb works on: arguments, a file, or standard input. */
#ifndef ATTN_CMD_INPUT_H
#define ATTN_CMD_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "options.h"

struct text {
    const char *data; /* valid UTF-8, may hold NUL bytes */
    size_t size;
};

/* How a file holds texts. Line ends are LF or CRLF. */
enum input_form {
    INPUT_ONE_TEXT, /* the whole file, without the line end at its end */
    INPUT_LINES /* every line; the last one may lack its line end. An empty file is one empty line
                 */
};

struct input {
    struct text *texts; /* [count], in order */
    size_t count;
    const char *file; /* as messages call it, or NULL where the texts are arguments */
    enum input_form form;
    char *content; /* of the file */
};

/* The first half: whether the command line names texts, in one way only. An operand "-" is standard
 * input, as is `-f -`. With INPUT_ONE_TEXT one operand is taken. STATUS_USAGE on failure. */
bool input_check(const struct shared_options *options, enum input_form form,
                 struct attn_error *error);

/* The second half: reads them. The file is missing, too large, or not UTF-8: STATUS_FAILURE.
 * Release with input_release; on failure nothing is held. */
bool input_read(const struct shared_options *options, enum input_form form, struct input *input,
                struct attn_error *error);
void input_release(struct input *input);

/* How a message calls a text: "FILE: line 3", "FILE", "text 2", "the text". */
void input_describe(const struct input *input, size_t index, char *name, size_t size);

/* Refuses what is not UTF-8: "NAME: byte 7 is not valid UTF-8", counted from 0. */
bool input_check_utf8(const char *name, const char *data, size_t size, struct attn_error *error);

#endif
