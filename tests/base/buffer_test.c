#include "base/buffer.h"

#include <string.h>

#include "cmocka_test.h"

static void nothing_is_allocated_before_the_first_byte(void **state)
{
    (void)state;
    struct attn_buffer buffer = {0};
    attn_buffer_add(&buffer, NULL, 0);
    attn_buffer_add_text(&buffer, "");
    attn_buffer_clear(&buffer);
    assert_null(buffer.data);
    assert_false(buffer.failed);
    attn_buffer_release(&buffer);
}

static void every_size_ends_with_a_nul(void **state)
{
    (void)state;
    struct attn_buffer buffer = {0};
    for (size_t size = 1; size <= 5000; size++) {
        char byte = (char)('a' + size % 26);
        attn_buffer_add(&buffer, &byte, 1);
        assert_int_equal(buffer.size, size);
        assert_int_equal(buffer.data[size], '\0');
    }
    for (size_t i = 0; i < buffer.size; i++)
        assert_int_equal(buffer.data[i], 'a' + (i + 1) % 26);
    attn_buffer_release(&buffer);
}

static void a_piece_larger_than_twice_the_capacity_fits(void **state)
{
    (void)state;
    char piece[3000];
    memset(piece, 'x', sizeof piece);
    struct attn_buffer buffer = {0};
    attn_buffer_add_text(&buffer, "ab");
    attn_buffer_add(&buffer, piece, sizeof piece);
    assert_int_equal(buffer.size, 2 + sizeof piece);
    assert_memory_equal(buffer.data + 2, piece, sizeof piece);
    attn_buffer_release(&buffer);
}

static void format_writes_behind_what_is_there(void **state)
{
    (void)state;
    struct attn_buffer buffer = {0};
    attn_buffer_format(&buffer, "%s", "");
    attn_buffer_format(&buffer, "%d-%s", 42, "text");
    attn_buffer_format(&buffer, "%*s", 1000, "end");
    assert_int_equal(buffer.size, 7 + 1000);
    assert_memory_equal(buffer.data, "42-text ", 8);
    assert_string_equal(buffer.data + buffer.size - 4, " end");
    attn_buffer_release(&buffer);
}

static void clear_keeps_the_memory(void **state)
{
    (void)state;
    struct attn_buffer buffer = {0};
    attn_buffer_add_text(&buffer, "some text");
    const char *data = buffer.data;
    attn_buffer_clear(&buffer);
    assert_int_equal(buffer.size, 0);
    assert_string_equal(buffer.data, "");
    attn_buffer_add_text(&buffer, "more");
    assert_ptr_equal(buffer.data, data);
    assert_string_equal(buffer.data, "more");
    attn_buffer_release(&buffer);
}

static void a_failure_is_remembered_and_the_content_stays(void **state)
{
    (void)state;
    struct attn_buffer buffer = {0};
    attn_buffer_add_text(&buffer, "kept");
    attn_buffer_add(&buffer, "never read", SIZE_MAX - 2);
    assert_true(buffer.failed);
    attn_buffer_add_text(&buffer, "ignored");
    attn_buffer_format(&buffer, "%d", 1);
    assert_string_equal(buffer.data, "kept");
    assert_int_equal(buffer.size, 4);
    attn_buffer_clear(&buffer);
    assert_true(buffer.failed);
    attn_buffer_release(&buffer);
    assert_false(buffer.failed);
}

static void check_json_string(const char *text, size_t size, const char *expected)
{
    struct attn_buffer buffer = {0};
    attn_buffer_add_json_string(&buffer, text, size);
    assert_string_equal(buffer.data, expected);
    attn_buffer_release(&buffer);
}

#define CHECK_JSON_STRING(literal, expected)                                                       \
    check_json_string((literal), sizeof(literal) - 1, (expected))

static void json_strings(void **state)
{
    (void)state;
    CHECK_JSON_STRING("", "\"\"");
    CHECK_JSON_STRING("plain", "\"plain\"");
    CHECK_JSON_STRING("\"", "\"\\\"\"");
    CHECK_JSON_STRING("a\\b\"c", "\"a\\\\b\\\"c\"");
    CHECK_JSON_STRING("\n\r\t", "\"\\n\\r\\t\"");
    CHECK_JSON_STRING("a\0b\x1b[31m\x7f", "\"a\\u0000b\\u001b[31m\\u007f\"");
    CHECK_JSON_STRING("</script>&", "\"\\u003c/script\\u003e\\u0026\"");
    CHECK_JSON_STRING("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", "\"\\u2028\\u2029\xe2\x80\xaa\"");
    CHECK_JSON_STRING("\xc2\x9b\xc2\xa0", "\"\\u009b\xc2\xa0\"");
    CHECK_JSON_STRING("h\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80",
                      "\"h\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80\"");
}

static void a_json_string_ends_where_its_size_says(void **state)
{
    (void)state;
    check_json_string("\xe2\x80\xa8", 2, "\"\xe2\x80\"");
    check_json_string("abc\"", 3, "\"abc\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_before_the_first_byte),
        cmocka_unit_test(every_size_ends_with_a_nul),
        cmocka_unit_test(a_piece_larger_than_twice_the_capacity_fits),
        cmocka_unit_test(format_writes_behind_what_is_there),
        cmocka_unit_test(clear_keeps_the_memory),
        cmocka_unit_test(a_failure_is_remembered_and_the_content_stays),
        cmocka_unit_test(json_strings),
        cmocka_unit_test(a_json_string_ends_where_its_size_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
