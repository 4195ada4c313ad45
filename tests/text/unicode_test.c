/* All code points against the reference tokenizer, and UTF-8. */
#include <stdio.h>
#include <string.h>

#include "text/bert_normalizer.h"
#include "text/unicode.h"
#include "tokenizer_test.h"

enum { CODE_POINTS = 0x110000, STRETCH = 4096 };

static bool is_surrogate(uint32_t code_point)
{
    return code_point >= 0xD800 && code_point < 0xE000;
}

static const char *class_name(enum unicode_class class)
{
    static const char *const names[] = {"PLAIN", "PUNCTUATION", "MARK", "COMBINING", "CONTROL"};
    return names[class];
}

/* [[first, last, class], …] of the reference, ascending; between them all is PLAIN. */
static void test_classes(void **state)
{
    (void)state;
    json_t *golden = test_data_json("golden/tokenizer_unicode.json");
    const json_t *ranges = json_object_get(golden, "classes");
    assert_int_equal(unicode_range_count, json_array_size(ranges));
    size_t next = 0;
    for (uint32_t c = 0; c < CODE_POINTS; c++) {
        if (is_surrogate(c))
            continue;
        const json_t *range = json_array_get(ranges, next);
        if (range && c > json_integer_value(json_array_get(range, 1)))
            range = json_array_get(ranges, ++next);
        bool inside = range && c >= json_integer_value(json_array_get(range, 0));
        const char *expected = inside ? json_string_value(json_array_get(range, 2)) : "PLAIN";
        if (strcmp(class_name(unicode_class_of(c)), expected) != 0)
            fail_msg("U+%04X is %s, expected %s", (unsigned)c, class_name(unicode_class_of(c)),
                     expected);
    }
    json_decref(golden);
}

static uint64_t fnv(uint64_t state, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        state = (state ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001B3);
    return state;
}

/* Normalises each code point by itself and compares hashes, one for each stretch. */
static void compare_hashes(const struct bert_normalizer *settings, const char *name)
{
    json_t *golden = test_data_json("golden/tokenizer_unicode.json");
    const json_t *hashes = json_object_get(json_object_get(golden, "hashes"), name);
    assert_int_equal(json_array_size(hashes), CODE_POINTS / STRETCH);
    struct normalized_text normalized = {0};
    for (uint32_t first = 0; first < CODE_POINTS; first += STRETCH) {
        uint64_t state = UINT64_C(0xCBF29CE484222325);
        for (uint32_t c = first; c < first + STRETCH; c++) {
            char bytes[UTF8_LIMIT];
            if (is_surrogate(c))
                continue;
            size_t size = (size_t)utf8_encode(c, bytes);
            assert_true(bert_normalize(settings, bytes, 0, size, &normalized));
            state = fnv(state, normalized.bytes, normalized.size);
            state = fnv(state, "\n", 1);
        }
        char hash[17];
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)state);
        const char *expected = json_string_value(json_array_get(hashes, first / STRETCH));
        if (strcmp(hash, expected) != 0)
            fail_msg("%s differs between U+%04X and U+%04X", name, (unsigned)first,
                     (unsigned)first + STRETCH - 1);
    }
    normalized_text_release(&normalized);
    json_decref(golden);
}

static void test_ideographs(void **state)
{
    (void)state;
    compare_hashes(&(struct bert_normalizer){.handle_chinese_chars = true}, "handle_chinese_chars");
}

static void test_strip_accents(void **state)
{
    (void)state;
    compare_hashes(&(struct bert_normalizer){.strip_accents = true}, "strip_accents");
}

static void test_lowercase(void **state)
{
    (void)state;
    compare_hashes(&(struct bert_normalizer){.lowercase = true}, "lowercase");
}

static void test_spaces(void **state)
{
    (void)state;
    static const uint32_t spaces[] = {'\t', '\n',   '\v',   '\f',   '\r',   ' ',    0x85,
                                      0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
    int count = 0;
    for (uint32_t c = 0; c < CODE_POINTS; c++)
        count += unicode_is_space(c);
    assert_int_equal(count, 25);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        assert_true(unicode_is_space(spaces[i]));
    for (uint32_t c = 0x2000; c <= 0x200A; c++)
        assert_true(unicode_is_space(c));
}

static void test_word_characters(void **state)
{
    (void)state;
    static const uint32_t inside[] = {'a',    'Z',     '0',    '_',    0xE9,   0x301,
                                      0x903,  0x20DD,  0x661,  0x2167, 0x203F, 0x200D,
                                      0x24B6, 0x1F130, 0x4E2D, 0x10400};
    static const uint32_t outside[] = {' ', '-', '$', '+', 0xB2, 0x2460, 0x2014, 0x1F600, 0x200B};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        assert_true(unicode_is_word_character(inside[i]));
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        assert_false(unicode_is_word_character(outside[i]));
}

static void test_utf8_round_trip(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < CODE_POINTS; c++) {
        char bytes[UTF8_LIMIT + 1] = "";
        size_t next;
        if (is_surrogate(c))
            continue;
        size_t size = (size_t)utf8_encode(c, bytes);
        if (utf8_invalid_offset(bytes, size) != size || utf8_decode(bytes, size, 0, &next) != c ||
            next != size || utf8_previous(bytes, size) != 0)
            fail_msg("U+%04X does not survive", (unsigned)c);
    }
}

static void test_invalid_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size, offset;
    } texts[] = {
        {"abc\x80", 4, 3},       /* a continuation without a beginning */
        {"\xC0\x80", 2, 0},      /* NUL in two bytes */
        {"a\xE0\x80\x80", 4, 1}, /* NUL in three */
        {"\xED\xA0\x80", 3, 0},  /* a surrogate */
        {"\xF4\x90\x80\x80", 4, 0} /* U+110000 */,
        {"\xF8\x88\x80\x80\x80", 5, 0},
        {"\xC3\xA9\xC3", 3, 2}, /* cut */
        {"ab\xF0\x9F\x98", 5, 2},
        {"\xC3(", 2, 0},
        {"\xFF", 1, 0},
        {"a\0\xFE", 3, 2},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(utf8_invalid_offset(texts[i].text, texts[i].size), texts[i].offset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),         cmocka_unit_test(test_ideographs),
        cmocka_unit_test(test_strip_accents),   cmocka_unit_test(test_lowercase),
        cmocka_unit_test(test_spaces),          cmocka_unit_test(test_word_characters),
        cmocka_unit_test(test_utf8_round_trip), cmocka_unit_test(test_invalid_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
