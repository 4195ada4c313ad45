/* The spelling of bytes, and the pattern of GPT-2, against handed cases and the reference. */
#include <stdio.h>
#include <string.h>

#include "text/byte_level.h"
#include "text/digit_split.h"
#include "text/unicode.h"
#include "tokenizer_test.h"

static void check_table(const json_t *input, const json_t *expected, void *user)
{
    (void)input;
    (void)user;
    const json_t *code_points = json_object_get(expected, "code_points");
    assert_int_equal(json_array_size(code_points), BYTE_LEVEL_BYTES);
    for (int byte = 0; byte < BYTE_LEVEL_BYTES; byte++)
        assert_int_equal(byte_level_code_point((unsigned char)byte),
                         json_integer_value(json_array_get(code_points, (size_t)byte)));
}

static void check_order(const json_t *input, const json_t *expected, void *user)
{
    (void)input;
    (void)user;
    const json_t *order = json_object_get(expected, "order");
    assert_int_equal(json_array_size(order), BYTE_LEVEL_BYTES);
    for (int rank = 0; rank < BYTE_LEVEL_BYTES; rank++)
        assert_int_equal(byte_level_ordered(rank),
                         json_integer_value(json_array_get(order, (size_t)rank)));
}

static void check_split(const json_t *input, const json_t *expected, void *user)
{
    (void)user;
    const json_t *pieces = json_object_get(expected, "pieces");
    const char *text = json_string_value(json_object_get(input, "text"));
    size_t size = strlen(text), begin = 0, count = 0;
    for (size_t end; begin < size; begin = end) {
        end = byte_level_word_end(text, size, begin);
        const json_t *piece = json_array_get(pieces, count++);
        assert_int_equal(end - begin, json_string_length(piece));
        assert_memory_equal(text + begin, json_string_value(piece), end - begin);
    }
    assert_int_equal(count, json_array_size(pieces));
}

/* Each digit by itself, and the pattern between them. */
static void check_digit_split(const json_t *input, const json_t *expected, void *user)
{
    (void)user;
    const json_t *pieces = json_object_get(expected, "pieces");
    const char *text = json_string_value(json_object_get(input, "text"));
    size_t size = strlen(text), count = 0;
    for (size_t begin = 0, part_end; begin < size; begin = part_end) {
        part_end = digit_split_end(DIGITS_SINGLE, text, size, begin);
        for (size_t at = begin, end; at < part_end; at = end) {
            end = at + byte_level_word_end(text + at, part_end - at, 0);
            const json_t *piece = json_array_get(pieces, count++);
            assert_int_equal(end - at, json_string_length(piece));
            assert_memory_equal(text + at, json_string_value(piece), end - at);
        }
    }
    assert_int_equal(count, json_array_size(pieces));
}

static void assert_parts(enum digit_split split, const char *text, const char *expected)
{
    struct attn_buffer parts = {0};
    size_t size = strlen(text);
    for (size_t begin = 0, end; begin < size; begin = end) {
        end = digit_split_end(split, text, size, begin);
        attn_buffer_add(&parts, text + begin, end - begin);
        attn_buffer_add_text(&parts, "|");
    }
    assert_string_equal(parts.data, expected);
    attn_buffer_release(&parts);
}

/* U+0663 and U+2167 are numbers, U+11DE3 only since Unicode 17. */
static void test_digits(void **state)
{
    (void)state;
    assert_parts(DIGITS_WITHIN, "a 12b", "a 12b|");
    assert_parts(DIGITS_IN_RUNS, "a 12b3", "a |12|b|3|");
    assert_parts(DIGITS_SINGLE, "a 12b3", "a |1|2|b|3|");
    assert_parts(DIGITS_SINGLE, "\u0663\u2167 \U00011DE3", "\u0663|\u2167| |\U00011DE3|");
    assert_parts(DIGITS_IN_RUNS, "\u0663\u2167\U00011DE3\U00016FF4x",
                 "\u0663\u2167\U00011DE3\U00016FF4|x|");
    assert_parts(DIGITS_SINGLE, "\U00011DDF\U00011DEA", "\U00011DDF\U00011DEA|");
}

static void test_handed_cases(void **state)
{
    (void)state;
    for_each_case("byte_table", check_table, NULL);
    for_each_case("byte_order", check_order, NULL);
    for_each_case("gpt2_split", check_split, NULL);
    for_each_case("smollm_split", check_digit_split, NULL);
}

/* Each byte by its code point and back; nothing else spells a byte. */
static void test_bytes_come_back(void **state)
{
    (void)state;
    int spelled = 0;
    for (int byte = 0; byte < BYTE_LEVEL_BYTES; byte++)
        assert_int_equal(byte_level_byte(byte_level_code_point((unsigned char)byte)), byte);
    for (uint32_t code_point = 0; code_point < 0x110000; code_point++)
        spelled += byte_level_byte(code_point) != BYTE_LEVEL_NO_BYTE;
    assert_int_equal(spelled, BYTE_LEVEL_BYTES);
}

static void test_spelling(void **state)
{
    (void)state;
    struct attn_buffer out = {0};
    byte_level_spell(" a\n\x00\xC3\xA9", 6, &out);
    assert_string_equal(out.data, "\u0120a\u010A\u0100\u00C3\u00A9");
    struct attn_buffer back = {0};
    byte_level_read(out.data, out.size, &back);
    assert_int_equal(back.size, 6);
    assert_memory_equal(back.data, " a\n\x00\xC3\xA9", 6);
    attn_buffer_clear(&back);
    byte_level_read("a\u4E2D", strlen("a\u4E2D"), &back); /* the second spells no byte */
    assert_string_equal(back.data, "a\u4E2D");
    attn_buffer_release(&back);
    attn_buffer_release(&out);
}

static char kind_letter(uint32_t code_point)
{
    return "OLNS"[unicode_kind_of(code_point)];
}

/* The kinds of all code points, by a hash for each stretch of 4,096. */
static void test_kinds(void **state)
{
    (void)state;
    json_t *golden = test_data_json("golden/tokenizer_bytes_settings.json");
    const json_t *hashes = json_object_get(golden, "kinds");
    assert_int_equal(json_array_size(hashes), 0x110000 / 4096);
    for (uint32_t first = 0; first < 0x110000; first += 4096) {
        uint64_t hash = UINT64_C(0xCBF29CE484222325);
        for (uint32_t c = first; c < first + 4096; c++) {
            if (c >= 0xD800 && c < 0xE000)
                continue;
            hash = (hash ^ (unsigned char)kind_letter(c)) * UINT64_C(0x100000001B3);
            hash = (hash ^ '\n') * UINT64_C(0x100000001B3);
        }
        char text[17];
        snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
        if (strcmp(text, json_string_value(json_array_get(hashes, first / 4096))) != 0)
            fail_msg("kinds differ between U+%04X and U+%04X", (unsigned)first,
                     (unsigned)first + 4095);
    }
    json_decref(golden);
}

/* The pattern's order of preference at the edges of a text. */
static void test_edges(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t end; /* of the first word */
    } cases[] = {
        {"'", 1},
        {"'s", 2},
        {"'sa", 2},
        {"'r", 1},
        {"'re", 3},
        {"'lll", 3},
        {" 's", 2},
        {"''s", 2},
        {" ", 1},
        {"  ", 2},
        {"  a", 1},
        {" a", 2},
        {"\na", 1},
        {"\n a", 1},
        {" \n", 2},
        {" \na", 1},
        {"\u00A0\u00A0a", 2},
        {"\u3000", 3},
        {" \u3000a", 1},
        {"a1", 1},
        {"1a", 1},
        {"a!", 1},
        {"!'s", 2},
        {" \u0661\u2167!", 6},
        {"\u00E9e\u0301", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# case %zu\n", i);
        assert_int_equal(byte_level_word_end(cases[i].text, strlen(cases[i].text), 0),
                         cases[i].end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_cases),    cmocka_unit_test(test_digits),
        cmocka_unit_test(test_bytes_come_back), cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
