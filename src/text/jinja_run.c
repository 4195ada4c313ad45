#include "text/jinja_run.h"

#include <string.h>

#include "text/jinja_expression.h"
#include "text/jinja_letter.h"
#include "text/jinja_scan.h"

enum { DEPTH_LIMIT = 16, PIECES_LIMIT = 100000, SHOWN_LIMIT = 40 };

struct program {
    struct jinja_scan scan;
    struct jinja_scope scope;
    struct attn_buffer *out;
    int depth, pieces;
    struct attn_error *error;
};

/* What ends a block. */
enum block_end { BLOCK_SOURCE, BLOCK_ELIF, BLOCK_ELSE, BLOCK_ENDIF, BLOCK_ENDFOR };

/* What is left of a statement. */
struct words {
    const char *text;
    size_t size;
};

static bool refuse(struct program *program, const char *what, struct words words)
{
    return attn_error_set(program->error, "%s %.*s", what,
                          words.size < SHOWN_LIMIT ? (int)words.size : SHOWN_LIMIT, words.text);
}

static void skip_space(struct words *words)
{
    while (words->size > 0 && jinja_is_space(*words->text)) {
        words->text++;
        words->size--;
    }
}

/* The name that the words begin with, and the white space around it. */
static struct words take_name(struct words *words)
{
    skip_space(words);
    struct words name = {words->text, 0};
    while (name.size < words->size && jinja_is_letter(name.text[name.size]))
        name.size++;
    words->text += name.size;
    words->size -= name.size;
    skip_space(words);
    return name;
}

static bool evaluate(struct program *program, struct words words, struct jinja_value *value)
{
    return jinja_evaluate(&program->scope, words.text, words.size, value, program->error);
}

static bool write_text(struct program *program, const char *text, size_t size)
{
    if (!jinja_scope_work(&program->scope, size, program->error))
        return false;
    attn_buffer_add(program->out, text, size);
    return true;
}

static bool write_value(struct program *program, struct words words)
{
    struct jinja_value value;
    if (!evaluate(program, words, &value))
        return false;
    if (value.kind != VALUE_TEXT)
        return refuse(program, "it writes what is no text:", words);
    return write_text(program, value.text, value.size);
}

/* NAME = EXPRESSION */
static bool run_set(struct program *program, struct words words)
{
    struct jinja_value value;
    struct words statement = words, name = take_name(&words);
    if (name.size == 0 || words.size < 2 || words.text[0] != '=')
        return refuse(program, "it uses set", statement);
    words.text++;
    words.size--;
    return evaluate(program, words, &value) &&
           jinja_scope_set(&program->scope, name.text, name.size, value, program->error);
}

static bool run_block(struct program *program, bool is_run, enum block_end *end,
                      struct words *condition);

static bool test(struct program *program, bool is_asked, struct words condition, bool *holds)
{
    struct jinja_value value;
    *holds = false;
    if (!is_asked)
        return true;
    if (!evaluate(program, condition, &value))
        return false;
    *holds = jinja_is_true(value);
    return true;
}

/* Behind {% if CONDITION %}: of all branches one is run at most. */
static bool run_if(struct program *program, bool is_run, struct words condition)
{
    enum block_end end = BLOCK_ELIF;
    bool is_decided = !is_run;
    while (end == BLOCK_ELIF) {
        bool holds;
        if (!test(program, !is_decided, condition, &holds) ||
            !run_block(program, holds, &end, &condition))
            return false;
        is_decided = is_decided || holds;
    }
    if (end == BLOCK_ELSE && !run_block(program, !is_decided, &end, &condition))
        return false;
    return end == BLOCK_ENDIF || attn_error_set(program->error, "it has an if without endif");
}

static bool run_body(struct program *program, bool is_run)
{
    enum block_end end;
    struct words condition;
    return run_block(program, is_run, &end, &condition) &&
           (end == BLOCK_ENDFOR || attn_error_set(program->error, "it has a for without endfor"));
}

/* The body for each message from the first one on; what it sets is forgotten behind each. */
static bool run_messages(struct program *program, struct words name, int64_t first)
{
    struct jinja_scope *scope = &program->scope;
    const struct jinja_scope outer = *scope;
    const struct jinja_scan begin = program->scan;
    bool done = true;
    for (size_t i = (size_t)first; i < scope->count && done; i++) {
        struct jinja_value message = {.kind = VALUE_MESSAGE, .number = (int64_t)i};
        program->scan = begin;
        scope->variable_count = scope->local_begin = outer.variable_count;
        scope->loop_index = i - (size_t)first;
        scope->loop_length = scope->count - (size_t)first;
        done = jinja_scope_set(scope, name.text, name.size, message, program->error) &&
               run_body(program, true);
    }
    scope->variable_count = outer.variable_count;
    scope->local_begin = outer.local_begin;
    scope->loop_index = outer.loop_index;
    scope->loop_length = outer.loop_length;
    return done;
}

/* Behind {% for NAME in MESSAGES %}. */
static bool run_for(struct program *program, bool is_run, struct words words)
{
    struct jinja_value value;
    struct words statement = words, name = take_name(&words), in = take_name(&words);
    if (!is_run)
        return run_body(program, false);
    if (name.size == 0 || !jinja_is_word(in.text, in.size, "in"))
        return refuse(program, "it uses for", statement);
    if (!evaluate(program, words, &value))
        return false;
    if (value.kind != VALUE_MESSAGES)
        return refuse(program, "it goes through", words);
    return run_messages(program, name, value.number);
}

static bool run_statement(struct program *program, bool is_run, struct words words,
                          enum block_end *end, bool *is_end)
{
    static const struct {
        const char *name;
        enum block_end end;
    } ends[] = {{"elif", BLOCK_ELIF},
                {"else", BLOCK_ELSE},
                {"endif", BLOCK_ENDIF},
                {"endfor", BLOCK_ENDFOR}};
    struct words name = take_name(&words);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (jinja_is_word(name.text, name.size, ends[i].name)) {
            *end = ends[i].end;
            *is_end = true;
            return true;
        }
    if (jinja_is_word(name.text, name.size, "if"))
        return run_if(program, is_run, words);
    if (jinja_is_word(name.text, name.size, "for"))
        return run_for(program, is_run, words);
    if (jinja_is_word(name.text, name.size, "set"))
        return !is_run || run_set(program, words);
    return refuse(program, "it uses the statement", name);
}

/* Runs, or passes over, what stands before the end; the words of an elif are its condition. */
static bool run_pieces(struct program *program, bool is_run, enum block_end *end,
                       struct words *condition)
{
    bool is_end = false, done = true;
    while (done && !is_end) {
        struct jinja_piece piece;
        const size_t begin = program->scan.at;
        if (++program->pieces > PIECES_LIMIT)
            return attn_error_set(program->error, "it runs too long");
        if (!jinja_scan_next(&program->scan, &piece, program->error) ||
            !jinja_scope_work(&program->scope, program->scan.at - begin, program->error))
            return false;
        struct words words = {piece.text, piece.size};
        switch (piece.kind) {
        case PIECE_END:
            *end = BLOCK_SOURCE;
            return true;
        case PIECE_TEXT:
            if (is_run)
                done = write_text(program, piece.text, piece.size);
            break;
        case PIECE_OUTPUT:
            done = !is_run || write_value(program, words);
            break;
        case PIECE_STATEMENT:
            done = run_statement(program, is_run, words, end, &is_end);
            take_name(&words);
            *condition = words;
            break;
        }
    }
    return done;
}

static bool run_block(struct program *program, bool is_run, enum block_end *end,
                      struct words *condition)
{
    if (++program->depth > DEPTH_LIMIT)
        return attn_error_set(program->error, "it nests too deep");
    bool done = run_pieces(program, is_run, end, condition);
    program->depth--;
    return done;
}

bool jinja_run(const char *source, size_t size, const struct jinja_message *messages, size_t count,
               bool asks, struct attn_buffer *out, struct attn_error *error)
{
    if (memchr(source, '\r', size) || memchr(source, '\0', size))
        return attn_error_set(error, "it holds carriage returns or zero bytes");
    if (size > 0 && source[size - 1] == '\n') /* which Jinja takes away */
        size--;
    struct program program = {
        .scan = {.source = source, .size = size},
        .scope = {.messages = messages, .count = count, .asks = asks},
        .out = out,
        .error = error,
    };
    enum block_end end;
    struct words condition;
    bool done =
        run_block(&program, true, &end, &condition) &&
        (end == BLOCK_SOURCE || attn_error_set(error, "it has an end of what has not begun"));
    jinja_scope_release(&program.scope);
    return done && (!out->failed || attn_error_memory(error));
}
