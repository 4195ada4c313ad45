/* What a chat template works on: values, messages, and the variables that it sets. */
#ifndef ATTN_TEXT_JINJA_SCOPE_H
#define ATTN_TEXT_JINJA_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct jinja_message {
    const char *role, *content;
};

enum jinja_value_kind {
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_FLAG,
    VALUE_NUMBER,
    VALUE_TEXT,
    VALUE_MESSAGES, /* messages[number..count) */
    VALUE_MESSAGE   /* messages[number] */
};

struct jinja_value {
    enum jinja_value_kind kind;
    int64_t number;   /* of a flag 0 or 1 */
    const char *text; /* of the source, of a message, or of the scope's memory */
    size_t size;
};

struct jinja_variable {
    const char *name; /* [size], of the source */
    size_t size;
    struct jinja_value value;
};

enum { JINJA_VARIABLES = 32 };

/* What expressions see. Start from zeros but for messages. */
struct jinja_scope {
    const struct jinja_message *messages; /* [count] */
    size_t count;
    bool asks; /* add_generation_prompt */

    struct jinja_variable variables[JINJA_VARIABLES]; /* the later ones hide the earlier */
    size_t variable_count;
    size_t local_begin; /* those from here on were set in the innermost loop's body */

    /* The innermost loop's place and length; 0 where there is none. */
    size_t loop_index, loop_length;

    struct jinja_memory *memory;
    size_t memory_size;
    size_t work; /* bytes read, compared and written so far */
};

void jinja_scope_release(struct jinja_scope *scope);

/* So many bytes that live as long as the scope; NULL where there is no memory, or too much is asked
 * for. */
char *jinja_scope_allocate(struct jinja_scope *scope, size_t size, struct attn_error *error);

/* Counts bytes that are about to be read, compared or written. False when a template goes through
 * more than any real one does: loops in loops over a long text would never end. */
bool jinja_scope_work(struct jinja_scope *scope, size_t bytes, struct attn_error *error);

/* Gives a name of the innermost body a value. False when there are too many. */
bool jinja_scope_set(struct jinja_scope *scope, const char *name, size_t size,
                     struct jinja_value value, struct attn_error *error);

/* The value of a name: messages, add_generation_prompt, the constants, and what was set; tools and
 * documents are none, others undefined. Refused are those that Transformers or Jinja gives a
 * meaning that is not known here, such as bos_token and raise_exception. */
bool jinja_scope_find(const struct jinja_scope *scope, const char *name, size_t size,
                      struct jinja_value *value, struct attn_error *error);

bool jinja_is_true(struct jinja_value value);

struct jinja_value jinja_flag(bool value);
struct jinja_value jinja_number(int64_t value);
struct jinja_value jinja_text(const char *text, size_t size);

/* Whether text[0..size) is this word. */
bool jinja_is_word(const char *text, size_t size, const char *word);

#endif
