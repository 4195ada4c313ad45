#include "text/unicode.h"

#include <utf8proc.h>

enum unicode_class unicode_class_of(uint32_t code_point)
{
    if ((code_point | 0x20) >= 'a' && (code_point | 0x20) <= 'z')
        return UNICODE_PLAIN;
    int low = 0, high = unicode_range_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (unicode_ranges[middle].last < code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < unicode_range_count && unicode_ranges[low].first <= code_point
               ? unicode_ranges[low].class
               : UNICODE_PLAIN;
}

bool unicode_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool is_in_runs(const struct unicode_run *runs, int count, uint32_t code_point)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (runs[middle].last < code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && runs[low].first <= code_point;
}

/* Numbers of Unicode 17 that unicode_numbers lacks. */
static const struct unicode_run later_numbers[] = {{0x11DE0, 0x11DE9}, {0x16FF4, 0x16FF6}};

bool unicode_is_number(uint32_t c)
{
    return unicode_kind_of(c) == UNICODE_NUMBER ||
           is_in_runs(later_numbers, sizeof later_numbers / sizeof later_numbers[0], c);
}

enum unicode_kind unicode_kind_of(uint32_t c)
{
    if (c < 0x80) {
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            return UNICODE_LETTER;
        if (c >= '0' && c <= '9')
            return UNICODE_NUMBER;
        return unicode_is_space(c) ? UNICODE_SPACE : UNICODE_OTHER;
    }
    if (is_in_runs(unicode_letters, unicode_letter_count, c))
        return UNICODE_LETTER;
    if (is_in_runs(unicode_numbers, unicode_number_count, c))
        return UNICODE_NUMBER;
    return unicode_is_space(c) ? UNICODE_SPACE : UNICODE_OTHER;
}

bool unicode_is_ideograph(uint32_t c)
{
    /* The gap from U+2B820 to U+2B91F is the reference's. */
    return (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0x2F800 && c <= 0x2FA1F);
}

bool unicode_is_word_character(uint32_t c)
{
    if (unicode_kind_of(c) == UNICODE_LETTER)
        return true;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default: /* joiners, and circled and squared letters, which are alphabetic symbols */
        return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
               (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
               (c >= 0x1F170 && c <= 0x1F189);
    }
}

/* Whether the reference, whose tables are older than utf8proc's, may know a decomposition. Below
 * U+10000 no new ones have come since. */
static bool may_decompose(uint32_t c)
{
    return (c >= 0xC0 && c <= 0xFFFF) || (c >= 0x1109A && c <= 0x110AB) ||
           (c >= 0x1112E && c <= 0x1112F) || (c >= 0x1134B && c <= 0x1134C) ||
           (c >= 0x114BB && c <= 0x114BE) || (c >= 0x115BA && c <= 0x115BB) ||
           (c >= 0x1D15E && c <= 0x1D1C0) || (c >= 0x2F800 && c <= 0x2FA1D);
}

int unicode_decompose(uint32_t code_point, uint32_t parts[UNICODE_DECOMPOSITION_LIMIT])
{
    parts[0] = code_point;
    if (!may_decompose(code_point))
        return 1;
    utf8proc_int32_t decomposed[UNICODE_DECOMPOSITION_LIMIT];
    int boundary_class = 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t)code_point, decomposed,
                                UNICODE_DECOMPOSITION_LIMIT, UTF8PROC_DECOMPOSE, &boundary_class);
    if (count < 1 || count > UNICODE_DECOMPOSITION_LIMIT)
        return 1;
    for (utf8proc_ssize_t i = 0; i < count; i++)
        parts[i] = (uint32_t)decomposed[i];
    return (int)count;
}

uint8_t unicode_combining_class(uint32_t code_point)
{
    if (code_point < 0x300)
        return 0;
    /* A later mark, which the reference takes for a letter, is not moved either. */
    enum unicode_class class = unicode_class_of(code_point);
    if (class != UNICODE_MARK && class != UNICODE_COMBINING)
        return 0;
    return (uint8_t)utf8proc_get_property((utf8proc_int32_t)code_point)->combining_class;
}

/* Pairs of Unicode 14 to 17, which an older utf8proc does not have. */
static const struct {
    uint32_t first, last, lower;
} later_capitals[] = {
    {0x1C89, 0x1C89, 0x1C8A},    {0x2C2F, 0x2C2F, 0x2C5F},    {0xA7C0, 0xA7C0, 0xA7C1},
    {0xA7CB, 0xA7CB, 0x0264},    {0xA7CC, 0xA7CC, 0xA7CD},    {0xA7CE, 0xA7CE, 0xA7CF},
    {0xA7D0, 0xA7D0, 0xA7D1},    {0xA7D2, 0xA7D2, 0xA7D3},    {0xA7D4, 0xA7D4, 0xA7D5},
    {0xA7D6, 0xA7D6, 0xA7D7},    {0xA7D8, 0xA7D8, 0xA7D9},    {0xA7DA, 0xA7DA, 0xA7DB},
    {0xA7DC, 0xA7DC, 0x019B},    {0x10570, 0x1057A, 0x10597}, {0x1057C, 0x1058A, 0x105A3},
    {0x1058C, 0x10592, 0x105B3}, {0x10594, 0x10595, 0x105BB}, {0x10D50, 0x10D65, 0x10D70},
    {0x16EA0, 0x16EB8, 0x16EBB},
};

int unicode_lowercase(uint32_t code_point, uint32_t lower[2])
{
    if (code_point < 0x80) {
        lower[0] = code_point >= 'A' && code_point <= 'Z' ? code_point | 0x20 : code_point;
        return 1;
    }
    if (code_point == 0x130) { /* İ is i and a dot above */
        lower[0] = 'i';
        lower[1] = 0x307;
        return 2;
    }
    lower[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code_point);
    if (lower[0] != code_point || code_point < later_capitals[0].first)
        return 1;
    for (size_t i = 0; i < sizeof later_capitals / sizeof later_capitals[0]; i++)
        if (code_point >= later_capitals[i].first && code_point <= later_capitals[i].last)
            lower[0] = code_point - later_capitals[i].first + later_capitals[i].lower;
    return 1;
}

uint32_t utf8_decode(const char *text, size_t size, size_t at, size_t *next)
{
    unsigned char first = (unsigned char)text[at];
    if (first < 0x80) {
        *next = at + 1;
        return first;
    }
    utf8proc_int32_t code_point;
    utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                               (utf8proc_ssize_t)(size - at), &code_point);
    if (length < 1) { /* not reached with valid text; never stand still */
        *next = at + 1;
        return 0xFFFD;
    }
    *next = at + (size_t)length;
    return (uint32_t)code_point;
}

size_t utf8_previous(const char *text, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
    return at;
}

int utf8_encode(uint32_t code_point, char bytes[UTF8_LIMIT])
{
    return (int)utf8proc_encode_char((utf8proc_int32_t)code_point, (utf8proc_uint8_t *)bytes);
}

size_t utf8_invalid_offset(const char *text, size_t size)
{
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text;
    for (size_t at = 0; at < size;) {
        if (bytes[at] < 0x80) {
            at++;
            continue;
        }
        utf8proc_int32_t code_point;
        utf8proc_ssize_t length =
            utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(size - at), &code_point);
        if (length < 1)
            return at;
        at += (size_t)length;
    }
    return size;
}
