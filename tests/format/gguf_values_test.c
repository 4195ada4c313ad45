/* Values of tests/data/golden/gguf.gguf, which scripts/golden_gguf.py wrote, and refusals. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "format/gguf.h"
#include "gguf_builder.h"
#include "scratch_folder.h"
#include "test_data.h"

static struct gguf *golden;

static int open_golden(void **state)
{
    (void)state;
    struct attn_error error;
    char *path = test_data_path("golden/gguf.gguf");
    bool done = gguf_open(&golden, path, &error);
    free(path);
    return done ? 0 : -1;
}

static int close_golden(void **state)
{
    (void)state;
    gguf_close(golden);
    return 0;
}

static void keys(void **state)
{
    (void)state;
    assert_int_equal(gguf_key_count(golden), 19);
    assert_string_equal(gguf_key_at(golden, 0), "general.architecture");
    assert_true(gguf_has(golden, "array.bytes"));
    for (size_t i = 0; i < gguf_key_count(golden); i++)
        assert_true(gguf_has(golden, gguf_key_at(golden, i)));
    assert_false(gguf_has(golden, "array.byte"));
    assert_false(gguf_has(golden, ""));
}

static void whole_numbers_of_each_width(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t value;
    } expected[] = {
        {"value.uint8", 200},
        {"value.int8", -100},
        {"value.uint16", 60000},
        {"value.int16", -30000},
        {"value.uint32", 4000000000},
        {"value.int32", -2000000000},
        {"value.uint64", 9007199254740993},
        {"value.int64", -9007199254740993},
    };
    struct attn_error error;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int64_t value = 0;
        assert_true(gguf_integer(golden, expected[i].key, GGUF_REQUIRED, &value, &error));
        assert_int_equal(value, expected[i].value);
    }
}

static void other_single_values(void **state)
{
    (void)state;
    struct attn_error error;
    double number = 0;
    assert_true(gguf_float(golden, "value.float32", GGUF_REQUIRED, &number, &error));
    assert_true(number == (double)0.1F);
    assert_true(gguf_float(golden, "value.float64", GGUF_REQUIRED, &number, &error));
    assert_true(number == 0.1);
    bool truth = false;
    assert_true(gguf_bool(golden, "value.bool", GGUF_REQUIRED, &truth, &error));
    assert_true(truth);
    static const char words[] = "gr\303\266\303\237e \360\237\230\200";
    struct gguf_string text = {0};
    assert_true(gguf_text(golden, "value.string", GGUF_REQUIRED, &text, &error));
    assert_int_equal(text.size, sizeof words - 1);
    assert_memory_equal(text.text, words, text.size);
}

static void arrays_of_strings(void **state)
{
    (void)state;
    static const char *const expected[] = {"", "a b", "\xC4\xA0", "gr\303\266\303\237e"};
    struct attn_error error;
    struct gguf_string *texts;
    size_t count;
    assert_true(gguf_texts(golden, "array.strings", GGUF_REQUIRED, &texts, &count, &error));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(texts[i].size, strlen(expected[i]));
        assert_memory_equal(texts[i].text, expected[i], texts[i].size);
    }
    free(texts);
}

static void arrays_of_numbers(void **state)
{
    (void)state;
    struct attn_error error;
    int32_t *integers;
    size_t count;
    assert_true(gguf_integers(golden, "array.integers", GGUF_REQUIRED, &integers, &count, &error));
    assert_int_equal(count, 3);
    assert_int_equal(integers[0], -1);
    assert_int_equal(integers[1], 0);
    assert_int_equal(integers[2], INT32_MAX);
    free(integers);
    assert_true(gguf_integers(golden, "array.unsigned", GGUF_REQUIRED, &integers, &count, &error));
    assert_int_equal(count, 2);
    assert_int_equal(integers[1], INT32_MAX);
    free(integers);
}

static void missing_values(void **state)
{
    (void)state;
    struct attn_error error = {""};
    int64_t integer = 7;
    double number = 7;
    bool truth = true;
    struct gguf_string text = {"seven", 5};
    struct gguf_string *texts = &text;
    int32_t *integers = &(int32_t){7};
    size_t count = 7;
    assert_true(gguf_integer(golden, "none", GGUF_OPTIONAL, &integer, &error));
    assert_true(gguf_float(golden, "none", GGUF_OPTIONAL, &number, &error));
    assert_true(gguf_bool(golden, "none", GGUF_OPTIONAL, &truth, &error));
    assert_true(gguf_text(golden, "none", GGUF_OPTIONAL, &text, &error));
    assert_true(integer == 7 && number == 7 && truth && text.size == 5);
    assert_true(gguf_texts(golden, "none", GGUF_OPTIONAL, &texts, &count, &error));
    assert_true(gguf_integers(golden, "none", GGUF_OPTIONAL, &integers, &count, &error));
    assert_null(texts);
    assert_null(integers);
    assert_int_equal(count, 0);
    assert_string_equal(error.message, "");

    assert_false(gguf_integer(golden, "llama.block_count", GGUF_REQUIRED, &integer, &error));
    assert_message(&error, "gguf.gguf: the file has no llama.block_count");
    assert_false(gguf_texts(golden, "none", GGUF_REQUIRED, &texts, &count, &error));
    assert_message(&error, "the file has no none");
}

static void values_of_another_kind(void **state)
{
    (void)state;
    struct attn_error error;
    int64_t integer;
    double number;
    bool truth;
    struct gguf_string text;
    struct gguf_string *texts;
    int32_t *integers;
    size_t count;
    assert_false(gguf_integer(golden, "value.float32", GGUF_OPTIONAL, &integer, &error));
    assert_message(&error, "gguf.gguf: value.float32 is f32, expected a whole number");
    assert_false(gguf_integer(golden, "array.integers", GGUF_OPTIONAL, &integer, &error));
    assert_message(&error, "array.integers is an array of i32, expected a whole number");
    assert_false(gguf_float(golden, "value.int8", GGUF_OPTIONAL, &number, &error));
    assert_message(&error, "value.int8 is i8, expected f32 or f64");
    assert_false(gguf_bool(golden, "value.uint8", GGUF_OPTIONAL, &truth, &error));
    assert_message(&error, "value.uint8 is u8, expected bool");
    assert_false(gguf_text(golden, "array.strings", GGUF_OPTIONAL, &text, &error));
    assert_message(&error, "array.strings is an array of strings, expected a string");
    assert_false(gguf_texts(golden, "value.string", GGUF_OPTIONAL, &texts, &count, &error));
    assert_message(&error, "value.string is string, expected an array of strings");
    assert_null(texts);
    assert_false(gguf_integers(golden, "array.bytes", GGUF_OPTIONAL, &integers, &count, &error));
    assert_message(&error, "array.bytes is an array of u8, expected whole numbers of 32 bits");
    assert_null(integers);
    assert_false(gguf_integers(golden, "array.floats", GGUF_OPTIONAL, &integers, &count, &error));
    assert_message(&error, "array.floats is an array of f32, expected whole numbers of 32 bits");
}

static void merges_as_bytes(void **state)
{
    (void)state;
    struct attn_error error;
    struct gguf *file;
    struct gguf_string *texts;
    size_t count;
    char *path = test_data_path("cases/files/merges-as-bytes.gguf");
    assert_true(gguf_open(&file, path, &error));
    assert_false(gguf_texts(file, "tokenizer.ggml.merges", GGUF_REQUIRED, &texts, &count, &error));
    assert_message(&error, "tokenizer.ggml.merges is an array of u8, expected strings");
    gguf_close(file);
    free(path);
}

static void numbers_that_do_not_fit(void **state)
{
    (void)state;
    enum { BOOL = 7, ARRAY = 9, U32 = 4, U64 = 10 };
    char *folder = scratch_folder_create();
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, 4);
    gguf_add_key(&builder, "large", U64);
    gguf_add_u64(&builder, (uint64_t)INT64_MAX + 1);
    gguf_add_key(&builder, "ids", ARRAY);
    gguf_add_u32(&builder, U32);
    gguf_add_u64(&builder, 2);
    gguf_add_u32(&builder, 1);
    gguf_add_u32(&builder, 1U << 31);
    gguf_add_key(&builder, "truth", BOOL);
    attn_buffer_add(&builder.bytes, "\2", 1);
    gguf_add_key(&builder, "nothing", ARRAY);
    gguf_add_u32(&builder, U32);
    gguf_add_u64(&builder, 0);
    char *path = gguf_build(&builder, folder, "large.gguf");

    struct attn_error error;
    struct gguf *file;
    int64_t integer;
    int32_t *integers;
    size_t count;
    bool truth;
    assert_true(gguf_open(&file, path, &error));
    assert_false(gguf_integer(file, "large", GGUF_REQUIRED, &integer, &error));
    assert_message(&error, "large is 9223372036854775808, expected at most 9223372036854775807");
    assert_false(gguf_integers(file, "ids", GGUF_REQUIRED, &integers, &count, &error));
    assert_message(&error, "item 1 of ids is 2147483648, expected at most 2147483647");
    assert_null(integers);
    assert_false(gguf_bool(file, "truth", GGUF_REQUIRED, &truth, &error));
    assert_message(&error, "truth is 2, expected 0 or 1");
    assert_true(gguf_integers(file, "nothing", GGUF_REQUIRED, &integers, &count, &error));
    assert_non_null(integers);
    assert_int_equal(count, 0);
    free(integers);
    gguf_close(file);
    free(path);
    scratch_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(whole_numbers_of_each_width),
        cmocka_unit_test(other_single_values),
        cmocka_unit_test(arrays_of_strings),
        cmocka_unit_test(arrays_of_numbers),
        cmocka_unit_test(missing_values),
        cmocka_unit_test(values_of_another_kind),
        cmocka_unit_test(merges_as_bytes),
        cmocka_unit_test(numbers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
