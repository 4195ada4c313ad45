#include "text/bert_normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "text/unicode.h"

struct combining_mark {
    uint32_t code_point;
    uint8_t class;           /* its canonical combining class, not 0 */
    bool leads;              /* the first code point of what its source character became */
    struct source_span span; /* of its source character */
};

/* What goes through the stages. */
struct pass {
    const struct bert_normalizer *settings;
    struct normalized_text *out;
    struct source_span span; /* of the source character that was used last */
};

static bool reserve(struct normalized_text *out, size_t extra)
{
    if (extra <= out->capacity - out->size)
        return true;
    size_t capacity = out->capacity + out->capacity / 2 + extra;
    if (capacity < extra || capacity > SIZE_MAX / sizeof *out->spans)
        return false;
    char *bytes = realloc(out->bytes, capacity);
    if (!bytes)
        return false;
    out->bytes = bytes;
    struct source_span *spans = realloc(out->spans, capacity * sizeof *spans);
    if (!spans)
        return false;
    out->spans = spans;
    out->capacity = capacity;
    return true;
}

static bool append(struct pass *pass, uint32_t code_point)
{
    struct normalized_text *out = pass->out;
    if (!reserve(out, UTF8_LIMIT))
        return false;
    int length = utf8_encode(code_point, out->bytes + out->size);
    for (int i = 0; i < length; i++)
        out->spans[out->size++] = pass->span;
    return true;
}

/* The last stage. */
static bool lowercase(struct pass *pass, uint32_t code_point)
{
    if (!pass->settings->lowercase)
        return append(pass, code_point);
    uint32_t lower[2];
    int count = unicode_lowercase(code_point, lower);
    for (int i = 0; i < count; i++)
        if (!append(pass, lower[i]))
            return false;
    return true;
}

static bool drop_mark(struct pass *pass, uint32_t code_point)
{
    if (code_point >= 0x300 && unicode_class_of(code_point) == UNICODE_MARK)
        return true;
    return lowercase(pass, code_point);
}

/* sorted[count] becomes marks[count] by ascending class, in the given order within a class.
 * Counting keeps a run of a million marks linear. */
static void sort_marks(const struct combining_mark *marks, size_t count,
                       struct combining_mark *sorted)
{
    size_t begins[256] = {0};
    for (size_t i = 0; i < count; i++)
        begins[marks[i].class]++;
    size_t begin = 0;
    for (int value = 0; value < 256; value++) {
        size_t marks_of_class = begins[value];
        begins[value] = begin;
        begin += marks_of_class;
    }
    for (size_t i = 0; i < count; i++)
        sorted[begins[marks[i].class]++] = marks[i];
}

/* Ends a run of combining marks. The reference orders the code points but consumes their sources as
 * they stand in the text, so that spans never descend. */
static bool flush_marks(struct pass *pass)
{
    size_t count = pass->out->mark_count;
    if (count == 0)
        return true;
    const struct combining_mark *marks = pass->out->marks, *sorted = marks;
    if (count > 1) {
        sorted += pass->out->mark_capacity / 2;
        sort_marks(marks, count, pass->out->marks + pass->out->mark_capacity / 2);
    }
    pass->out->mark_count = 0;
    size_t source = 0;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i].leads) {
            while (!marks[source].leads)
                source++;
            pass->span = marks[source++].span;
        }
        if (!drop_mark(pass, sorted[i].code_point))
            return false;
    }
    return true;
}

/* The first half of the array holds the run, the second is where it is sorted. */
static bool push_mark(struct normalized_text *out, struct combining_mark mark)
{
    if (out->mark_count == out->mark_capacity / 2) {
        if (out->mark_capacity > SIZE_MAX / 2 / sizeof *out->marks)
            return false;
        size_t capacity = out->mark_capacity ? out->mark_capacity * 2 : 32;
        struct combining_mark *marks = realloc(out->marks, capacity * sizeof *marks);
        if (!marks)
            return false;
        out->marks = marks;
        out->mark_capacity = capacity;
    }
    out->marks[out->mark_count++] = mark;
    return true;
}

static bool strip_accents(struct pass *pass, uint32_t code_point, struct source_span span)
{
    uint32_t parts[UNICODE_DECOMPOSITION_LIMIT];
    int count = unicode_decompose(code_point, parts);
    for (int i = 0; i < count; i++) {
        uint8_t class = unicode_combining_class(parts[i]);
        if (class != 0) {
            struct combining_mark mark = {parts[i], class, i == 0, span};
            if (!push_mark(pass->out, mark))
                return false;
            continue;
        }
        if (!flush_marks(pass))
            return false;
        if (i == 0)
            pass->span = span;
        if (!drop_mark(pass, parts[i]))
            return false;
    }
    return true;
}

static bool after_spacing(struct pass *pass, uint32_t code_point, struct source_span span)
{
    if (pass->settings->strip_accents)
        return strip_accents(pass, code_point, span);
    pass->span = span;
    return lowercase(pass, code_point);
}

static bool normalize_character(struct pass *pass, uint32_t code_point, struct source_span span)
{
    if (pass->settings->clean_text) {
        if (unicode_is_space(code_point) && unicode_class_of(code_point) != UNICODE_CONTROL)
            code_point = ' ';
        else if (unicode_class_of(code_point) == UNICODE_CONTROL)
            return true;
    }
    if (pass->settings->handle_chinese_chars && unicode_is_ideograph(code_point))
        return after_spacing(pass, ' ', span) && after_spacing(pass, code_point, span) &&
               after_spacing(pass, ' ', span);
    return after_spacing(pass, code_point, span);
}

bool bert_normalize(const struct bert_normalizer *settings, const char *text, size_t begin,
                    size_t end, struct normalized_text *normalized)
{
    struct pass pass = {.settings = settings, .out = normalized};
    normalized->size = 0;
    normalized->mark_count = 0;
    if (!reserve(normalized, end - begin))
        return false;
    for (size_t at = begin; at < end;) {
        size_t next;
        uint32_t code_point = utf8_decode(text, end, at, &next);
        struct source_span span = {(uint32_t)at, (uint32_t)next};
        bool done;
        if (code_point >= ' ' && code_point < 0x7F) { /* nothing but case can change */
            done = flush_marks(&pass);
            pass.span = span;
            done = done && lowercase(&pass, code_point);
        } else {
            done = normalize_character(&pass, code_point, span);
        }
        if (!done)
            return false;
        at = next;
    }
    return flush_marks(&pass);
}

void normalized_text_release(struct normalized_text *normalized)
{
    free(normalized->bytes);
    free(normalized->spans);
    free(normalized->marks);
    memset(normalized, 0, sizeof *normalized);
}
