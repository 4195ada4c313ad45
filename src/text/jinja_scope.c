#include "text/jinja_scope.h"

#include <stdlib.h>
#include <string.h>

/* A template could double a text, and again what comes of it. */
enum { MEMORY_LIMIT = 1 << 20, WORK_LIMIT = 1 << 24, SHOWN_LIMIT = 40 };

struct jinja_memory {
    struct jinja_memory *next;
    char bytes[];
};

void jinja_scope_release(struct jinja_scope *scope)
{
    for (struct jinja_memory *memory = scope->memory, *next; memory; memory = next) {
        next = memory->next;
        free(memory);
    }
    scope->memory = NULL;
}

char *jinja_scope_allocate(struct jinja_scope *scope, size_t size, struct attn_error *error)
{
    if (size > MEMORY_LIMIT || scope->memory_size + size > MEMORY_LIMIT) {
        attn_error_set(error, "it needs more than %d bytes of text", MEMORY_LIMIT);
        return NULL;
    }
    struct jinja_memory *memory = malloc(sizeof *memory + size);
    if (!memory) {
        attn_error_memory(error);
        return NULL;
    }
    memory->next = scope->memory;
    scope->memory = memory;
    scope->memory_size += size;
    return memory->bytes;
}

bool jinja_scope_work(struct jinja_scope *scope, size_t bytes, struct attn_error *error)
{
    if (bytes > WORK_LIMIT - scope->work)
        return attn_error_set(error, "it runs too long");
    scope->work += bytes;
    return true;
}

bool jinja_is_word(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && memcmp(text, word, size) == 0;
}

struct jinja_value jinja_flag(bool value)
{
    return (struct jinja_value){.kind = VALUE_FLAG, .number = value};
}

struct jinja_value jinja_number(int64_t value)
{
    return (struct jinja_value){.kind = VALUE_NUMBER, .number = value};
}

struct jinja_value jinja_text(const char *text, size_t size)
{
    return (struct jinja_value){.kind = VALUE_TEXT, .text = text, .size = size};
}

bool jinja_is_true(struct jinja_value value)
{
    switch (value.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_TEXT:
        return value.size > 0;
    case VALUE_FLAG:
    case VALUE_NUMBER:
        return value.number != 0;
    case VALUE_MESSAGES: /* an empty rest is not made */
    case VALUE_MESSAGE:
        break;
    }
    return true;
}

bool jinja_scope_set(struct jinja_scope *scope, const char *name, size_t size,
                     struct jinja_value value, struct attn_error *error)
{
    for (size_t i = scope->local_begin; i < scope->variable_count; i++)
        if (scope->variables[i].size == size && memcmp(scope->variables[i].name, name, size) == 0) {
            scope->variables[i].value = value;
            return true;
        }
    if (scope->variable_count == JINJA_VARIABLES)
        return attn_error_set(error, "it has more than %d variables", JINJA_VARIABLES);
    scope->variables[scope->variable_count++] = (struct jinja_variable){name, size, value};
    return true;
}

/* To take these for undefined would be wrong. */
static bool is_foreign(const char *name, size_t size)
{
    static const char *const names[] = {
        "raise_exception", "strftime_now", "namespace", "range", "dict",
        "lipsum",          "cycler",       "joiner",    "self",  "caller"};
    static const char ending[] = "_token";
    size_t length = sizeof ending - 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (jinja_is_word(name, size, names[i]))
            return true;
    return size >= length && memcmp(name + size - length, ending, length) == 0;
}

static bool find_variable(const struct jinja_scope *scope, const char *name, size_t size,
                          struct jinja_value *value)
{
    for (size_t i = scope->variable_count; i-- > 0;)
        if (scope->variables[i].size == size && memcmp(scope->variables[i].name, name, size) == 0) {
            *value = scope->variables[i].value;
            return true;
        }
    return false;
}

bool jinja_scope_find(const struct jinja_scope *scope, const char *name, size_t size,
                      struct jinja_value *value, struct attn_error *error)
{
    const struct {
        const char *name;
        struct jinja_value value;
    } known[] = {
        {"messages", {.kind = VALUE_MESSAGES}},
        {"add_generation_prompt", jinja_flag(scope->asks)},
        {"true", jinja_flag(true)},
        {"True", jinja_flag(true)},
        {"false", jinja_flag(false)},
        {"False", jinja_flag(false)},
        {"none", {.kind = VALUE_NONE}},
        {"None", {.kind = VALUE_NONE}},
        {"tools", {.kind = VALUE_NONE}},
        {"documents", {.kind = VALUE_NONE}},
    };
    *value = (struct jinja_value){.kind = VALUE_UNDEFINED};
    if (find_variable(scope, name, size, value))
        return true;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (jinja_is_word(name, size, known[i].name)) {
            *value = known[i].value;
            return true;
        }
    return !is_foreign(name, size) ||
           attn_error_set(error, "it uses %.*s", size < SHOWN_LIMIT ? (int)size : SHOWN_LIMIT,
                          name);
}
