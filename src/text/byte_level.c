#include "text/byte_level.h"

#include <string.h>

#include "text/unicode.h"

/* Bytes that are no printable sign of Latin-1: 0x00 to 0x20, 0x7F to 0xA0, 0xAD. */
enum { FIRST_CODE_POINT = 0x100, CODE_POINT_OF_DELETE = 0x121, CODE_POINT_OF_SOFT_HYPHEN = 0x143 };

uint32_t byte_level_code_point(unsigned char byte)
{
    if (byte <= 0x20)
        return FIRST_CODE_POINT + (uint32_t)byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return CODE_POINT_OF_DELETE + (uint32_t)byte - 0x7F;
    return byte == 0xAD ? CODE_POINT_OF_SOFT_HYPHEN : byte;
}

int byte_level_byte(uint32_t code_point)
{
    if (code_point > CODE_POINT_OF_SOFT_HYPHEN)
        return BYTE_LEVEL_NO_BYTE;
    if (code_point == CODE_POINT_OF_SOFT_HYPHEN)
        return 0xAD;
    if (code_point >= CODE_POINT_OF_DELETE)
        return (int)(code_point - CODE_POINT_OF_DELETE) + 0x7F;
    if (code_point >= FIRST_CODE_POINT)
        return (int)code_point - FIRST_CODE_POINT;
    bool spells_itself = byte_level_code_point((unsigned char)code_point) == code_point;
    return spells_itself ? (int)code_point : BYTE_LEVEL_NO_BYTE;
}

unsigned char byte_level_ordered(int rank)
{
    static const struct {
        int count;
        uint32_t first;
    } runs[] = {{94, 0x21}, {12, 0xA1}, {82, 0xAE}, {68, FIRST_CODE_POINT}};
    int run = 0;
    while (rank >= runs[run].count)
        rank -= runs[run++].count;
    return (unsigned char)byte_level_byte(runs[run].first + (uint32_t)rank);
}

void byte_level_spell(const char *bytes, size_t size, struct attn_buffer *out)
{
    for (size_t i = 0; i < size; i++) {
        char letter[UTF8_LIMIT];
        int length = utf8_encode(byte_level_code_point((unsigned char)bytes[i]), letter);
        attn_buffer_add(out, letter, (size_t)length);
    }
}

static bool spells_bytes(const char *spelling, size_t size)
{
    for (size_t at = 0; at < size;)
        if (byte_level_byte(utf8_decode(spelling, size, at, &at)) == BYTE_LEVEL_NO_BYTE)
            return false;
    return true;
}

void byte_level_read(const char *spelling, size_t size, struct attn_buffer *out)
{
    if (!spells_bytes(spelling, size)) {
        attn_buffer_add(out, spelling, size);
        return;
    }
    for (size_t at = 0; at < size;) {
        char byte = (char)byte_level_byte(utf8_decode(spelling, size, at, &at));
        attn_buffer_add(out, &byte, 1);
    }
}

/* Bytes of "'s" and the like at text[begin], 0 where there is none. */
static size_t contraction(const char *text, size_t size, size_t begin)
{
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (text[begin] != '\'')
        return 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = strlen(endings[i]);
        if (length < size - begin && memcmp(text + begin + 1, endings[i], length) == 0)
            return 1 + length;
    }
    return 0;
}

/* The end of the code points from `at` on that are of this kind. */
static size_t run_end(const char *text, size_t size, size_t at, enum unicode_kind kind)
{
    size_t next = at;
    while (at < size && unicode_kind_of(utf8_decode(text, size, at, &next)) == kind)
        at = next;
    return at;
}

/* \s+(?!\S)|\s+: white space less its last sign, which the next word may want, where it has more
 * than one and something follows. */
static size_t space_end(const char *text, size_t size, size_t begin)
{
    size_t end = run_end(text, size, begin, UNICODE_SPACE);
    if (end == size)
        return end;
    size_t last = utf8_previous(text, end);
    return last > begin ? last : end;
}

size_t byte_level_word_end(const char *text, size_t size, size_t begin)
{
    size_t next, after, ending = contraction(text, size, begin);
    if (ending > 0)
        return begin + ending;
    enum unicode_kind kind = unicode_kind_of(utf8_decode(text, size, begin, &next));
    if (text[begin] == ' ' && next < size) {
        enum unicode_kind second = unicode_kind_of(utf8_decode(text, size, next, &after));
        if (second != UNICODE_SPACE)
            return run_end(text, size, after, second);
    }
    return kind == UNICODE_SPACE ? space_end(text, size, begin) : run_end(text, size, next, kind);
}
