/* Bytes in pieces become whole characters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "test_data.h"
#include "text/utf8_stream.h"

static const char replaced[] = "\xEF\xBF\xBD";

static size_t read_hex(const json_t *hex, char *bytes)
{
    const char *digits = json_string_value(hex);
    size_t count = json_string_length(hex) / 2;
    for (size_t i = 0; i < count; i++) {
        const char pair[] = {digits[2 * i], digits[2 * i + 1], '\0'};
        bytes[i] = (char)strtol(pair, NULL, 16);
    }
    return count;
}

/* Whether `shown` is the case's bytes, or those with each ill-formed part as U+FFFD: that is how
 * this project shows them, always. */
static void check_shown(const struct attn_buffer *shown, size_t begin, const json_t *expected)
{
    char bytes[16];
    size_t size = read_hex(expected, bytes);
    struct attn_buffer wanted = {0};
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        size_t length = byte < 0x80 ? 1 : byte >= 0xF0 && byte < 0xF8 ? 4 : byte >= 0xE0 ? 3 : 2;
        if (byte == 0xFF || (length > 1 && (i + 1 == size || !(bytes[i + 1] & 0x80)))) {
            attn_buffer_add_text(&wanted, replaced);
        } else {
            attn_buffer_add(&wanted, bytes + i, length);
            i += length - 1;
        }
    }
    assert_int_equal(shown->size - begin, wanted.size);
    if (wanted.size > 0)
        assert_memory_equal(shown->data + begin, wanted.data, wanted.size);
    attn_buffer_release(&wanted);
}

static void run_case(const json_t *input, const json_t *expected)
{
    const json_t *pieces = json_object_get(input, "pieces_hex");
    struct utf8_stream stream = {0};
    struct attn_buffer out = {0};
    char bytes[16];
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        size_t begin = out.size, size = read_hex(json_array_get(pieces, i), bytes);
        utf8_stream_add(&stream, bytes, size, &out);
        check_shown(&out, begin, json_array_get(json_object_get(expected, "shown_hex"), i));
    }
    size_t rest = read_hex(json_object_get(expected, "rest_hex"), bytes);
    assert_int_equal(stream.count, rest);
    assert_memory_equal(stream.waiting, bytes, rest);
    utf8_stream_end(&stream, &out);
    assert_string_equal(out.data,
                        json_string_value(json_object_get(expected, "whole_with_replacement")));
    attn_buffer_release(&out);
}

static void test_handed_cases(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/sampling.json");
    const json_t *cases = json_object_get(file, "cases");
    int count = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        if (strcmp(json_string_value(json_object_get(one, "op")), "stream") != 0)
            continue;
        print_message("# %s\n", json_string_value(json_object_get(one, "name")));
        run_case(json_object_get(one, "input"), json_object_get(one, "expected"));
        count++;
    }
    assert_int_equal(count, 4);
    json_decref(file);
}

static void assert_streamed(const char *bytes, size_t size, const char *expected)
{
    for (size_t step = 1; step <= size; step++) {
        struct utf8_stream stream = {0};
        struct attn_buffer out = {0};
        for (size_t at = 0; at < size; at += step)
            utf8_stream_add(&stream, bytes + at, step < size - at ? step : size - at, &out);
        utf8_stream_end(&stream, &out);
        assert_string_equal(out.data, expected);
        assert_int_equal(stream.count, 0);
        attn_buffer_release(&out);
    }
}

#define R "\xEF\xBF\xBD"

/* The examples of the Unicode standard (3.9, tables 3-8 to 3-11), and the edges of table 3-7. */
static void test_ill_formed(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", R R R R R R R R "A"},
        {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", R R R R R R R R "A"},
        {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", R R R R R "A" R R "B"},
        {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", R R R R "A"},
        {"\xE0\xA0\x80\xED\x9F\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF",
         "\xE0\xA0\x80\xED\x9F\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
        {"\xC2\x80\xC1\x80\xDF\xBF", "\xC2\x80" R R "\xDF\xBF"},
        {"\xF4\x90\x80\x80", R R R R},
        {"\xF5\x80", R R},
        {"a\xF0\x9F\x98", "a" R},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# %zu\n", i);
        assert_streamed(cases[i].bytes, strlen(cases[i].bytes), cases[i].expected);
    }
}

/* Every character, byte by byte: shown with its last byte, and not before. */
static void test_all_characters(void **state)
{
    (void)state;
    struct utf8_stream stream = {0};
    struct attn_buffer out = {0};
    for (uint32_t c = 0x80; c < 0x110000; c++) {
        char bytes[4];
        size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (c >= 0xD800 && c < 0xE000)
            continue;
        for (size_t i = size; i-- > 0;)
            bytes[i] = (char)(0x80 | (c >> 6 * (size - 1 - i) & 0x3F));
        bytes[0] = (char)((size == 2 ? 0xC0 : size == 3 ? 0xE0 : 0xF0) | c >> 6 * (size - 1));
        attn_buffer_clear(&out);
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(out.size, 0);
            utf8_stream_add(&stream, bytes + i, 1, &out);
        }
        assert_int_equal(out.size, size);
        assert_memory_equal(out.data, bytes, size);
    }
    attn_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_cases),
        cmocka_unit_test(test_ill_formed),
        cmocka_unit_test(test_all_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
