#include "draw/label.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    ZERO_WIDTH_JOINER = 0x200d,
    EMOJI_PRESENTATION = 0xfe0f,
    FIRST_SKIN_TONE = 0x1f3fb,
    LAST_SKIN_TONE = 0x1f3ff,
    BYTES_PER_COLUMN = 32 /* a flag spelled with tags has 28 for two columns */
};

/* One code point, or one byte that belongs to none (then code is −1). Returns its bytes. */
static size_t next_code(const char *text, size_t size, int32_t *code)
{
    utf8proc_ssize_t limit = size < 4 ? (utf8proc_ssize_t)size : 4;
    utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)text, limit, code);
    if (used > 0)
        return (size_t)used;
    *code = -1;
    return 1;
}

static bool is_noncharacter(int32_t code)
{
    return (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe;
}

/* Embeddings, overrides and isolates steer the direction of what stands around them. */
static bool steers_direction(int32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static bool must_be_spelled(int32_t code)
{
    return (code >= 0x80 && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           steers_direction(code) || is_noncharacter(code);
}

static bool is_control(int32_t code)
{
    return code >= 0 && (code < 0x20 || code == 0x7f);
}

/* Leaves no ink on its own. */
static bool is_blank(int32_t code)
{
    if (code < 0 || is_control(code) || must_be_spelled(code))
        return false;
    utf8proc_category_t category = utf8proc_category(code);
    return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_CF ||
           (code >= 0xfe00 && code <= 0xfe0f);
}

static bool is_blank_text(const char *text, size_t size)
{
    int32_t code;
    for (size_t at = 0; at < size;) {
        at += next_code(text + at, size - at, &code);
        if (!is_blank(code))
            return false;
    }
    return true;
}

static void add_code(struct attn_buffer *out, int32_t code)
{
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t size = utf8proc_encode_char(code, bytes);
    attn_buffer_add(out, bytes, (size_t)size);
}

static void add_spelled(struct attn_buffer *out, int32_t code)
{
    attn_buffer_format(out, code > 0xffff ? "\\u{%X}" : "\\u%04X", (unsigned)code);
}

/* Line ends and tabs, which ordinary texts have, by signs that common fonts have too: DejaVu Sans,
 * often the only one, has no picture of a control character. */
static void add_control(struct attn_buffer *out, int32_t code)
{
    if (code == '\n')
        attn_buffer_add_text(out, "↵");
    else if (code == '\t')
        attn_buffer_add_text(out, "⇥");
    else
        add_code(out, code == 0x7f ? DELETE_PICTURE : FIRST_CONTROL_PICTURE + code);
}

void label_show(const char *label, size_t size, struct attn_buffer *out)
{
    if (!size)
        attn_buffer_add_text(out, "∅");
    bool blank = is_blank_text(label, size);
    int32_t code;
    for (size_t at = 0, used; at < size; at += used) {
        used = next_code(label + at, size - at, &code);
        if (code < 0)
            attn_buffer_format(out, "\\x%02X", (unsigned char)label[at]);
        else if (is_control(code))
            add_control(out, code);
        else if (blank && code == ' ')
            attn_buffer_add_text(out, "␣");
        else if (blank || must_be_spelled(code))
            add_spelled(out, code);
        else
            attn_buffer_add(out, label + at, used);
    }
}

/* One grapheme cluster: what a reader takes for one character. Returns its bytes. */
static size_t next_cluster(const char *text, size_t size, size_t *width)
{
    int32_t code, previous = -1, state = 0;
    size_t at = 0;
    *width = 0;
    while (at < size) {
        size_t used = next_code(text + at, size - at, &code);
        if (at > 0 &&
            (code < 0 || previous < 0 || utf8proc_grapheme_break_stateful(previous, code, &state)))
            break;
        int columns = code < 0 ? 1 : utf8proc_charwidth(code);
        /* A joined emoji and a skin tone change a picture that has been counted. */
        bool joined = columns == 2 && previous == ZERO_WIDTH_JOINER;
        bool skin_tone = at > 0 && code >= FIRST_SKIN_TONE && code <= LAST_SKIN_TONE;
        if (columns > 0 && !joined && !skin_tone)
            *width += (size_t)columns;
        if (code == EMOJI_PRESENTATION && *width == 1)
            *width = 2;
        previous = code;
        at += used;
    }
    return at;
}

size_t label_width(const char *shown, size_t size)
{
    size_t total = 0;
    for (size_t at = 0, width; at < size; total += width)
        at += next_cluster(shown + at, size - at, &width);
    return total;
}

bool label_cut(const char *shown, size_t size, size_t columns, struct attn_buffer *out)
{
    size_t total = 0, keep = 0;
    for (size_t at = 0, width; at < size;) {
        at += next_cluster(shown + at, size - at, &width);
        total += width;
        bool is_small = at / BYTES_PER_COLUMN < columns;
        if (total < columns && is_small)
            keep = at;
        if (total > columns || !is_small) {
            attn_buffer_add(out, shown, keep);
            attn_buffer_add_text(out, "…");
            return true;
        }
    }
    attn_buffer_add(out, shown, size);
    return false;
}

bool label_is_right_to_left(const char *shown, size_t size)
{
    int32_t code;
    for (size_t at = 0; at < size;) {
        at += next_code(shown + at, size - at, &code);
        if (code < 0)
            continue;
        utf8proc_propval_t class = utf8proc_get_property(code)->bidi_class;
        if (class == UTF8PROC_BIDI_CLASS_R || class == UTF8PROC_BIDI_CLASS_AL)
            return true;
    }
    return false;
}

void label_repair(const char *text, size_t size, struct attn_buffer *out)
{
    int32_t code;
    for (size_t at = 0, used; at < size; at += used) {
        used = next_code(text + at, size - at, &code);
        if (code < 0)
            attn_buffer_add_text(out, "\xef\xbf\xbd");
        else
            attn_buffer_add(out, text + at, used);
    }
}

struct shown_label *shown_labels_create(const char *const *labels, size_t count)
{
    struct shown_label *shown = calloc(count ? count : 1, sizeof *shown);
    for (size_t i = 0; shown && i < count; i++) {
        label_show(labels[i], strlen(labels[i]), &shown[i].full);
        if (!shown[i].full.failed)
            shown[i].was_cut =
                label_cut(shown[i].full.data, shown[i].full.size, LABEL_COLUMNS, &shown[i].cut);
        if (shown[i].full.failed || shown[i].cut.failed) {
            shown_labels_release(shown, count);
            return NULL;
        }
    }
    return shown;
}

void shown_labels_release(struct shown_label *labels, size_t count)
{
    for (size_t i = 0; labels && i < count; i++) {
        attn_buffer_release(&labels[i].full);
        attn_buffer_release(&labels[i].cut);
    }
    free(labels);
}
