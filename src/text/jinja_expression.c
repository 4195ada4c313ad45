#include "text/jinja_expression.h"

#include <string.h>

#include "text/jinja_letter.h"

enum { DEPTH_LIMIT = 32, DIGITS_LIMIT = 9, SHOWN_LIMIT = 40 };

enum lexeme_kind { LEXEME_END, LEXEME_NAME, LEXEME_NUMBER, LEXEME_TEXT, LEXEME_SIGN };

struct reader {
    struct jinja_scope *scope;
    const char *at, *end;
    enum lexeme_kind kind; /* of the lexeme at hand */
    const char *text;      /* [size]; of a literal what stands between its quotes */
    size_t size;
    int depth;
    int unused; /* > 0: a part whose value nobody asks for, such as x in "false and x" */
    struct attn_error *error;
};

static bool refuse(struct reader *reader, const char *what, const char *text, size_t size)
{
    return attn_error_set(reader->error, "%s %.*s", what,
                          size < SHOWN_LIMIT ? (int)size : SHOWN_LIMIT, text);
}

static void advance(struct reader *reader)
{
    while (reader->at < reader->end && jinja_is_space(*reader->at))
        reader->at++;
    const char *begin = reader->at, *end = begin;
    if (begin == reader->end) {
        reader->kind = LEXEME_END;
    } else if (*begin == '\'' || *begin == '"') {
        reader->kind = LEXEME_TEXT;
        for (end = ++begin; end < reader->end && *end != begin[-1]; end++)
            if (*end == '\\' && end + 1 < reader->end)
                end++;
        reader->at = end + (end < reader->end);
    } else if (jinja_is_letter(*begin)) {
        reader->kind = jinja_is_digit(*begin) ? LEXEME_NUMBER : LEXEME_NAME;
        while (end < reader->end && jinja_is_letter(*end))
            end++;
        reader->at = end;
    } else {
        reader->kind = LEXEME_SIGN;
        end += 1 + (end + 1 < reader->end && end[1] == '=' && strchr("=!<>", *end));
        reader->at = end;
    }
    reader->text = begin;
    reader->size = (size_t)(end - begin);
}

static bool is_at(const struct reader *reader, enum lexeme_kind kind, const char *text)
{
    return reader->kind == kind && jinja_is_word(reader->text, reader->size, text);
}

/* Takes the lexeme where it is this one. */
static bool take(struct reader *reader, enum lexeme_kind kind, const char *text)
{
    if (!is_at(reader, kind, text))
        return false;
    advance(reader);
    return true;
}

static bool expect_sign(struct reader *reader, const char *sign)
{
    return take(reader, LEXEME_SIGN, sign) || refuse(reader, "it uses", reader->text, reader->size);
}

static bool read_expression(struct reader *reader, struct jinja_value *value);

/* A literal with its escapes resolved. */
static bool read_text(struct reader *reader, struct jinja_value *value)
{
    static const char escapes[] = "nrt\\'\"", signs[] = "\n\r\t\\'\"";
    char *bytes = jinja_scope_allocate(reader->scope, reader->size, reader->error);
    size_t size = 0;
    if (!bytes)
        return false;
    for (size_t i = 0; i < reader->size; i++) {
        char c = reader->text[i];
        if (c == '\\') {
            const char *escape = i + 1 < reader->size ? strchr(escapes, reader->text[++i]) : NULL;
            if (!escape || *escape == '\0')
                return refuse(reader, "it has the escape", reader->text + i - 1, 2);
            c = signs[escape - escapes];
        }
        bytes[size++] = c;
    }
    *value = jinja_text(bytes, size);
    advance(reader);
    return true;
}

static bool read_number(struct reader *reader, struct jinja_value *value)
{
    int64_t sum = 0;
    for (size_t i = 0; i < reader->size; i++) {
        if (!jinja_is_digit(reader->text[i]) || i == DIGITS_LIMIT)
            return refuse(reader, "it uses", reader->text, reader->size);
        sum = 10 * sum + (reader->text[i] - '0');
    }
    *value = jinja_number(sum);
    advance(reader);
    return true;
}

/* loop.NAME */
static bool read_loop(struct reader *reader, struct jinja_value *value)
{
    const struct jinja_scope *scope = reader->scope;
    if (!expect_sign(reader, "."))
        return false;
    if (scope->loop_length == 0 || reader->kind != LEXEME_NAME)
        return refuse(reader, "it uses loop outside a loop:", reader->text, reader->size);
    if (is_at(reader, LEXEME_NAME, "first"))
        *value = jinja_flag(scope->loop_index == 0);
    else if (is_at(reader, LEXEME_NAME, "last"))
        *value = jinja_flag(scope->loop_index + 1 == scope->loop_length);
    else if (is_at(reader, LEXEME_NAME, "index"))
        *value = jinja_number((int64_t)scope->loop_index + 1);
    else if (is_at(reader, LEXEME_NAME, "index0"))
        *value = jinja_number((int64_t)scope->loop_index);
    else if (is_at(reader, LEXEME_NAME, "length"))
        *value = jinja_number((int64_t)scope->loop_length);
    else
        return refuse(reader, "it uses loop.", reader->text, reader->size);
    advance(reader);
    return true;
}

static bool read_name(struct reader *reader, struct jinja_value *value)
{
    if (take(reader, LEXEME_NAME, "loop"))
        return read_loop(reader, value);
    if (!jinja_scope_find(reader->scope, reader->text, reader->size, value, reader->error))
        return false;
    advance(reader);
    return true;
}

static bool read_primary(struct reader *reader, struct jinja_value *value)
{
    bool is_negative = take(reader, LEXEME_SIGN, "-");
    if (reader->kind == LEXEME_NUMBER) {
        if (!read_number(reader, value))
            return false;
        value->number = is_negative ? -value->number : value->number;
        return true;
    }
    if (!is_negative && reader->kind == LEXEME_TEXT)
        return read_text(reader, value);
    if (!is_negative && reader->kind == LEXEME_NAME)
        return read_name(reader, value);
    if (!is_negative && take(reader, LEXEME_SIGN, "("))
        return read_expression(reader, value) && expect_sign(reader, ")");
    return refuse(reader, "it uses", reader->text, reader->size);
}

/* value.name or value['name']; a message has a role and a content, and nothing else. */
static bool find_field(struct reader *reader, struct jinja_value *value, const char *name,
                       size_t size)
{
    if (value->kind != VALUE_MESSAGE)
        return reader->unused > 0 || refuse(reader, "it uses the field", name, size);
    const struct jinja_message *message = &reader->scope->messages[value->number];
    *value = (struct jinja_value){.kind = VALUE_UNDEFINED};
    if (jinja_is_word(name, size, "role"))
        *value = jinja_text(message->role, strlen(message->role));
    else if (jinja_is_word(name, size, "content"))
        *value = jinja_text(message->content, strlen(message->content));
    return true;
}

/* messages[index] and messages[index:], which count from the end where index is negative. */
static bool find_item(struct reader *reader, struct jinja_value *value, int64_t index, bool is_rest)
{
    if (value->kind != VALUE_MESSAGES)
        return reader->unused > 0 || refuse(reader, "it uses an index of", "no messages", 11);
    int64_t first = value->number, count = (int64_t)reader->scope->count;
    int64_t place = index < 0 ? count + index : first + index;
    *value =
        (struct jinja_value){.kind = is_rest ? VALUE_MESSAGES : VALUE_MESSAGE, .number = place};
    if (place < first || place >= count) {
        if (is_rest)
            return refuse(reader, "it goes through", "no messages", 11);
        value->kind = VALUE_UNDEFINED;
    }
    return true;
}

static bool read_subscript(struct reader *reader, struct jinja_value *value)
{
    struct jinja_value key;
    if (!read_expression(reader, &key))
        return false;
    bool is_rest = key.kind == VALUE_NUMBER && take(reader, LEXEME_SIGN, ":");
    if (!expect_sign(reader, "]"))
        return false;
    if (key.kind == VALUE_TEXT)
        return find_field(reader, value, key.text, key.size);
    if (key.kind == VALUE_NUMBER)
        return find_item(reader, value, key.number, is_rest);
    return reader->unused > 0 || refuse(reader, "it uses an index that is", "no number", 9);
}

static bool apply_filter(struct reader *reader, struct jinja_value *value)
{
    if (is_at(reader, LEXEME_NAME, "length") && value->kind == VALUE_MESSAGES) {
        *value = jinja_number((int64_t)reader->scope->count - value->number);
    } else if (is_at(reader, LEXEME_NAME, "trim") && value->kind == VALUE_TEXT) {
        if (!jinja_scope_work(reader->scope, value->size, reader->error))
            return false;
        for (; value->size > 0 && jinja_is_space(*value->text); value->size--)
            value->text++;
        while (value->size > 0 && jinja_is_space(value->text[value->size - 1]))
            value->size--;
    } else if (reader->unused == 0) {
        return refuse(reader, "it uses the filter", reader->text, reader->size);
    }
    advance(reader);
    return true;
}

static bool read_postfix(struct reader *reader, struct jinja_value *value)
{
    bool done = read_primary(reader, value);
    while (done) {
        if (take(reader, LEXEME_SIGN, ".")) {
            done = find_field(reader, value, reader->text, reader->size);
            advance(reader);
        } else if (take(reader, LEXEME_SIGN, "[")) {
            done = read_subscript(reader, value);
        } else if (take(reader, LEXEME_SIGN, "|")) {
            done = apply_filter(reader, value);
        } else {
            break;
        }
    }
    return done;
}

static bool read_remainder(struct reader *reader, struct jinja_value *value)
{
    bool done = read_postfix(reader, value);
    while (done && take(reader, LEXEME_SIGN, "%")) {
        struct jinja_value right;
        if (!read_postfix(reader, &right))
            return false;
        if (value->kind == VALUE_NUMBER && right.kind == VALUE_NUMBER && value->number >= 0 &&
            right.number > 0)
            value->number %= right.number;
        else if (reader->unused == 0)
            done = refuse(reader, "it uses %", "of what is no number", 20);
    }
    return done;
}

static bool join(struct reader *reader, struct jinja_value *value, struct jinja_value right)
{
    if (reader->unused > 0)
        return true;
    if (value->kind != VALUE_TEXT || right.kind != VALUE_TEXT)
        return refuse(reader, "it joins", "what is no text", 15);
    char *both = jinja_scope_allocate(reader->scope, value->size + right.size, reader->error);
    if (!both)
        return false;
    memcpy(both, value->text, value->size);
    memcpy(both + value->size, right.text, right.size);
    *value = jinja_text(both, value->size + right.size);
    return true;
}

static bool read_sum(struct reader *reader, struct jinja_value *value)
{
    bool done = read_remainder(reader, value);
    while (done && (take(reader, LEXEME_SIGN, "+") || take(reader, LEXEME_SIGN, "~"))) {
        struct jinja_value right;
        done = read_remainder(reader, &right) && join(reader, value, right);
    }
    return done;
}

static bool compare(struct reader *reader, struct jinja_value *left, struct jinja_value right,
                    bool equal)
{
    bool same = left->kind == right.kind;
    if (same && (left->kind == VALUE_MESSAGES || left->kind == VALUE_MESSAGE))
        return reader->unused > 0 || refuse(reader, "it compares", "messages", 8);
    if (same && left->kind == VALUE_TEXT &&
        !jinja_scope_work(reader->scope, left->size, reader->error))
        return false;
    if (same && left->kind == VALUE_TEXT)
        same = left->size == right.size && memcmp(left->text, right.text, right.size) == 0;
    else if (same)
        same = left->number == right.number;
    *left = jinja_flag(same == equal);
    return true;
}

/* "is defined" and the like, behind "is". */
static bool read_test(struct reader *reader, struct jinja_value *value)
{
    bool is_not = take(reader, LEXEME_NAME, "not"), holds;
    if (is_at(reader, LEXEME_NAME, "defined"))
        holds = value->kind != VALUE_UNDEFINED;
    else if (is_at(reader, LEXEME_NAME, "undefined"))
        holds = value->kind == VALUE_UNDEFINED;
    else if (is_at(reader, LEXEME_NAME, "none"))
        holds = value->kind == VALUE_NONE;
    else if (is_at(reader, LEXEME_NAME, "string"))
        holds = value->kind == VALUE_TEXT;
    else
        return refuse(reader, "it uses the test", reader->text, reader->size);
    *value = jinja_flag(holds != is_not);
    advance(reader);
    return true;
}

static bool read_comparison(struct reader *reader, struct jinja_value *value)
{
    struct jinja_value right;
    bool is_not = take(reader, LEXEME_NAME, "not");
    if (is_not) {
        if (++reader->depth > DEPTH_LIMIT)
            return refuse(reader, "it nests", "too deep", 8);
        bool done = read_comparison(reader, value);
        reader->depth--;
        *value = jinja_flag(done && !jinja_is_true(*value));
        return done;
    }
    if (!read_sum(reader, value))
        return false;
    if (take(reader, LEXEME_NAME, "is"))
        return read_test(reader, value);
    bool equal = take(reader, LEXEME_SIGN, "==");
    if (!equal && !take(reader, LEXEME_SIGN, "!="))
        return true;
    return read_sum(reader, &right) && compare(reader, value, right, equal);
}

/* What stands right of "and" behind what is false is read and not asked for. */
static bool read_and(struct reader *reader, struct jinja_value *value)
{
    bool done = read_comparison(reader, value);
    while (done && take(reader, LEXEME_NAME, "and")) {
        struct jinja_value right;
        bool decided = !jinja_is_true(*value);
        reader->unused += decided;
        done = read_comparison(reader, &right);
        reader->unused -= decided;
        if (!decided)
            *value = right;
    }
    return done;
}

static bool read_expression(struct reader *reader, struct jinja_value *value)
{
    if (++reader->depth > DEPTH_LIMIT)
        return refuse(reader, "it nests", "too deep", 8);
    bool done = read_and(reader, value);
    while (done && take(reader, LEXEME_NAME, "or")) {
        struct jinja_value right;
        bool decided = jinja_is_true(*value);
        reader->unused += decided;
        done = read_and(reader, &right);
        reader->unused -= decided;
        if (!decided)
            *value = right;
    }
    reader->depth--;
    return done;
}

bool jinja_evaluate(struct jinja_scope *scope, const char *text, size_t size,
                    struct jinja_value *value, struct attn_error *error)
{
    struct reader reader = {.scope = scope, .at = text, .end = text + size, .error = error};
    advance(&reader);
    return read_expression(&reader, value) &&
           (reader.kind == LEXEME_END || refuse(&reader, "it uses", reader.text, reader.size));
}
