/* Each kind of fault of a safetensors file, and what is valid beside it. */
#include "format/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "model_file.h"
#include "scratch_folder.h"

/* Opens a file of this header and so many bytes of data; NULL with the error filled. */
static struct safetensors *open_made(const char *header, size_t data_size, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    write_safetensors(folder, "x.safetensors", header, data_size);
    char *path = attn_path_join(folder, "x.safetensors");
    struct safetensors *file;
    bool opened = safetensors_open(&file, path, error);
    assert_true(opened == (file != NULL));
    if (!opened)
        assert_message(error, path);
    free(path);
    scratch_folder_remove(folder); /* what is mapped stays */
    return file;
}

static void check_refused(const char *header, size_t data_size, const char *words)
{
    struct attn_error error;
    assert_null(open_made(header, data_size, &error));
    assert_message(&error, words);
}

static struct safetensors *open_valid(const char *header, size_t data_size)
{
    struct attn_error error;
    struct safetensors *file = open_made(header, data_size, &error);
    if (!file)
        fail_msg("%s", error.message);
    return file;
}

#define TENSOR(name, type, shape, begin, end)                                                      \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end  \
    "]}"

static void check_raw_refused(const char *bytes, size_t size, const char *words)
{
    char *folder = scratch_folder_create();
    scratch_write(folder, "raw", bytes, size);
    char *path = attn_path_join(folder, "raw");
    struct attn_error error;
    struct safetensors *file;
    assert_false(safetensors_open(&file, path, &error));
    assert_null(file);
    assert_message(&error, words);
    free(path);
    scratch_folder_remove(folder);
}

static void header_lengths(void **state)
{
    (void)state;
    for (size_t size = 0; size < 8; size++)
        check_raw_refused("\2\0\0\0\0\0\0\0", size, "shorter than 8 bytes");
    check_raw_refused("\1\0\0\0\0\0\0\0", 8, "header length 1 is beyond the end of the file");
    check_raw_refused("\3\0\0\0\0\0\0\0{}", 10, "header length 3 is beyond the end of the file");
    check_raw_refused("\1\xe1\xf5\5\0\0\0\0{}", 10,
                      "header length 100000001 is above the limit of 100000000");
    check_raw_refused("\0\xe1\xf5\5\0\0\0\0{}", 10,
                      "header length 100000000 is beyond the end of the file");
    /* 2^64 − 8 and −6: the length plus 8 wraps to 0 and to 2. */
    check_raw_refused("\xf8\xff\xff\xff\xff\xff\xff\xff{}", 10, "is beyond the end of the file");
    check_raw_refused("\xfa\xff\xff\xff\xff\xff\xff\xff{}", 10, "is beyond the end of the file");
    check_raw_refused("\0\0\0\0\0\0\0\0{}", 10, "the header is not valid");
}

static void headers_that_are_not_json(void **state)
{
    (void)state;
    const char *const headers[] = {
        "{",
        "{}x",
        "{\"w\":}",
        "{" TENSOR("w", "F32", "[1]", 0, 4),
        "{" TENSOR("w", "F32", "[01]", 0, 4) "}",
        "{" TENSOR("w", "F32", "[99999999999999999999]", 0, 4) "}",
        "{" TENSOR("w", "F32", "[1e999]", 0, 4) "}",
        "{" TENSOR("w\xff", "F32", "[1]", 0, 4) "}",
        "{" TENSOR("w\\ud800", "F32", "[1]", 0, 4) "}",
        "{" TENSOR("w\\u0000", "F32", "[1]", 0, 4) "}",
        "{" TENSOR("w", "F32", "[1]", 0, 4) "," TENSOR("w", "F32", "[1]", 4, 8) "}",
        "{" TENSOR("w", "F32", "[1]", 0, 4) "," TENSOR("\\u0077", "F32", "[1]", 4, 8) "}",
        "{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        check_refused(headers[i], 4, "the header is not valid JSON");
    check_refused("[]", 0, "the header is not valid");
    check_refused(" {}", 0, "the header is not valid");
    check_refused("null", 0, "the header is not valid");
}

static void deep_headers(void **state)
{
    (void)state;
    enum { DEPTH = 300000 };
    const char *const before[] = {"{\"__metadata__\":", "{\"w\":", "{\"w\":{\"shape\":"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t start = strlen(before[i]);
        char *header = calloc(start + DEPTH + 1, 1);
        memcpy(header, before[i], start);
        memset(header + start, '[', DEPTH);
        check_refused(header, 0, "the header is not valid JSON");
        free(header);
    }
}

static void metadata(void **state)
{
    (void)state;
    check_refused("{\"__metadata__\":[]}", 0, "metadata holds strings only");
    check_refused("{\"__metadata__\":null}", 0, "metadata holds strings only");
    check_refused("{\"__metadata__\":{\"a\":\"b\",\"c\":1}}", 0, "metadata holds strings only");
    check_refused("{\"__metadata__\":{\"a\":{}}}", 0, "metadata holds strings only");

    struct safetensors *file = open_valid("{\"__metadata__\":{\"a\":\"\",\"b\":\"c\"}}", 0);
    assert_int_equal(safetensors_count(file), 0);
    assert_null(safetensors_find(file, "__metadata__"));
    assert_string_equal(safetensors_metadata(file, "a"), "");
    assert_string_equal(safetensors_metadata(file, "b"), "c");
    safetensors_close(file);

    file = open_valid("{}      ", 0); /* padded, as writers do */
    assert_int_equal(safetensors_count(file), 0);
    assert_null(safetensors_find(file, ""));
    assert_null(safetensors_metadata(file, "a"));
    safetensors_close(file);
}

static void entries_that_are_no_tensors(void **state)
{
    (void)state;
    check_refused("{\"w\":1}", 0, "tensor w has no dtype");
    check_refused("{\"w\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, "tensor w has no dtype");
    check_refused("{" TENSOR("w", "F33", "[1]", 0, 4) "}", 4, "tensor w: dtype F33 is not known");
    check_refused("{" TENSOR("w", "f32", "[1]", 0, 4) "}", 4, "tensor w: dtype f32 is not known");
    check_refused("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4,
                  "tensor w: shape is not an array");
    check_refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4,
                  "tensor w: data_offsets are not two whole numbers");
}

static void numbers_that_are_no_sizes(void **state)
{
    (void)state;
    const char shape_words[] = "of its shape is not a whole number of at least 0";
    check_refused("{" TENSOR("w", "F32", "[-1]", 0, 4) "}", 4, shape_words);
    check_refused("{" TENSOR("w", "F32", "[1.0]", 0, 4) "}", 4, shape_words);
    check_refused("{" TENSOR("w", "F32", "[1,\"1\"]", 0, 4) "}", 4, "dimension 1 of its shape");
    check_refused("{" TENSOR("w", "F32", "[true]", 0, 4) "}", 4, shape_words);
    check_refused("{" TENSOR("w", "F32", "{}", 0, 4) "}", 4, "shape is not an array");

    const char offset_words[] = "data_offsets are not two whole numbers of at least 0";
    check_refused("{" TENSOR("w", "F32", "[1]", -4, 0) "}", 4, offset_words);
    check_refused("{" TENSOR("w", "F32", "[1]", 0.0, 4) "}", 4, offset_words);
    check_refused("{" TENSOR("w", "F32", "[1]", 0, null) "}", 4, offset_words);
    check_refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4,
                  offset_words);
    check_refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4,
                  offset_words);
    check_refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":\"04\"}}", 4,
                  offset_words);
}

static void offsets_that_do_not_fit_the_shape(void **state)
{
    (void)state;
    check_refused("{" TENSOR("w", "F16", "[3,2]", 0, 16) "}", 16,
                  "tensor w: shape [3, 2] of F16 needs 12 bytes, the offsets give 16");
    check_refused("{" TENSOR("w", "BOOL", "[]", 0, 0) "}", 0,
                  "tensor w: shape [] of BOOL needs 1 bytes, the offsets give 0");
    check_refused("{" TENSOR("w", "I64", "[0]", 0, 8) "}", 8,
                  "tensor w: shape [0] of I64 needs 0 bytes, the offsets give 8");
    check_refused("{" TENSOR("w", "F32", "[1]", 8, 4) "}", 8,
                  "tensor w: the offsets 8, 4 are reversed");
    check_refused("{" TENSOR("w", "U8", "[1]", 9223372036854775807, 0) "}", 8,
                  "tensor w: the offsets 9223372036854775807, 0 are reversed");
}

static void shapes_whose_product_wraps(void **state)
{
    (void)state;
    const char words[] = "tensor w: the shape is too large";
    check_refused("{" TENSOR("w", "U8", "[4294967296,4294967296]", 0, 0) "}", 0, words);
    check_refused("{" TENSOR("w", "U8", "[3,6148914691236517206]", 0, 2) "}", 2, words);
    check_refused("{" TENSOR("w", "U8", "[9223372036854775807,2]", 0, 0) "}", 0, words);
    /* The elements fit, their bytes do not. */
    check_refused("{" TENSOR("w", "F64", "[2305843009213693952]", 0, 0) "}", 0, words);
    check_refused("{" TENSOR("w", "F16", "[4611686018427387904]", 0, 0) "}", 0, words);
    /* A zero hides no overflow beside it, on whichever side. */
    check_refused("{" TENSOR("w", "U8", "[0,4294967296,4294967296]", 0, 0) "}", 0, words);
    check_refused("{" TENSOR("w", "U8", "[4294967296,4294967296,0]", 0, 0) "}", 0, words);
    check_refused("{" TENSOR("w", "U8", "[9223372036854775807]", 0, 9223372036854775807) "}", 8,
                  "the data ends 9223372036854775799 bytes early");
}

static void ranks(void **state)
{
    (void)state;
    struct safetensors *file = open_valid("{" TENSOR("w", "U8", "[1,1,1,2,1,1,1,3]", 0, 6) "}", 6);
    const struct stored_tensor *tensor = safetensors_at(file, 0);
    assert_int_equal(tensor->rank, 8);
    assert_int_equal(tensor->shape[7], 3);
    assert_int_equal(tensor->elements, 6);
    safetensors_close(file);
    check_refused("{" TENSOR("w", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1,
                  "tensor w has 9 dimensions, at most 8 are possible");
}

static void holes_and_overlaps(void **state)
{
    (void)state;
    check_refused("{" TENSOR("a", "F32", "[1]", 4, 8) "}", 8, "bytes 0 to 4 belong to no tensor");
    check_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "}", 7, "bytes 4 to 7 belong to no tensor");
    check_refused("{}", 1, "bytes 0 to 1 belong to no tensor");
    check_refused("{" TENSOR("b", "U8", "[2]", 3, 5) "," TENSOR("a", "U8", "[2]", 0, 2) "}", 5,
                  "bytes 2 to 3 belong to no tensor");
    check_refused("{" TENSOR("b", "U8", "[0]", 9, 9) "," TENSOR("a", "U8", "[5]", 0, 5) "}", 5,
                  "bytes 5 to 9 belong to no tensor");

    check_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "," TENSOR("b", "F32", "[1]", 0, 4) "}", 4,
                  "tensor b overlaps tensor a");
    check_refused("{" TENSOR("b", "U8", "[2]", 3, 5) "," TENSOR("a", "U8", "[4]", 0, 4) "}", 5,
                  "tensor b overlaps tensor a");
    check_refused("{" TENSOR("in", "U8", "[1]", 2, 3) "," TENSOR("all", "U8", "[6]", 0, 6) "}", 6,
                  "tensor in overlaps tensor all");
    check_refused("{" TENSOR("in", "U8", "[0]", 2, 2) "," TENSOR("all", "U8", "[6]", 0, 6) "}", 6,
                  "tensor in overlaps tensor all");
}

static void truncated_data(void **state)
{
    (void)state;
    check_refused("{" TENSOR("a", "F32", "[2]", 0, 8) "}", 0, "the data ends 8 bytes early");
    check_refused("{" TENSOR("b", "F64", "[1]", 8, 16) "," TENSOR("a", "F32", "[2]", 0, 8) "}", 15,
                  "the data ends 1 bytes early");
}

static void tensors_come_in_the_order_of_their_data(void **state)
{
    (void)state;
    struct safetensors *file = open_valid(
        "{" TENSOR("c", "U8", "[3]", 6, 9) "," TENSOR("none", "F32", "[0,4]", 6, 6) "," TENSOR(
            "b", "U8", "[2]", 0, 2) "," TENSOR("a", "BF16", "[2]", 2, 6) "}",
        9);
    const char *const names[] = {"b", "a", "none", "c"};
    const size_t begins[] = {0, 2, 6, 6};
    const size_t sizes[] = {2, 4, 0, 3};
    assert_int_equal(safetensors_count(file), 4);
    const unsigned char *data = safetensors_at(file, 0)->data;
    for (size_t i = 0; i < 4; i++) {
        const struct stored_tensor *tensor = safetensors_at(file, i);
        assert_string_equal(tensor->name, names[i]);
        assert_ptr_equal(tensor->data, data + begins[i]);
        assert_int_equal(tensor->size, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(tensor->data[j], begins[i] + j);
        assert_ptr_equal(safetensors_find(file, names[i]), tensor);
    }
    assert_int_equal(safetensors_find(file, "none")->elements, 0);
    safetensors_close(file);
}

static void names_are_json_strings(void **state)
{
    (void)state;
    struct safetensors *file = open_valid(
        "{" TENSOR("\\\"q\\\"\\/\\n", "U8", "[1]", 0, 1) "," TENSOR(
            "", "U8", "[1]", 1, 2) "," TENSOR("\\u4e2d\\uD83D\\uDE80", "U8", "[1]", 2, 3) "}",
        3);
    assert_non_null(safetensors_find(file, "\"q\"/\n"));
    assert_non_null(safetensors_find(file, ""));
    assert_non_null(safetensors_find(file, "\xe4\xb8\xad\xf0\x9f\x9a\x80"));
    assert_null(safetensors_find(file, "q"));
    safetensors_close(file);
}

static void a_name_cannot_hide_what_is_wrong(void **state)
{
    (void)state;
    enum { LENGTH = 3000 };
    char name[LENGTH + 1];
    memset(name, 'n', LENGTH);
    name[LENGTH] = '\0';
    struct attn_buffer header = {0};
    attn_buffer_format(&header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
                       name);
    check_refused(header.data, 4, "shape [2] of F32 needs 8 bytes");
    attn_buffer_release(&header);
    check_refused("{" TENSOR("a\\n\\u001b[2J", "F32", "[2]", 0, 4) "}", 4, "tensor a??[2J: shape");
}

static void many_tensors_are_found(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct attn_buffer header = {0};
    attn_buffer_add_text(&header, "{");
    for (int i = 0; i < COUNT; i++) {
        int place = (int)((long)i * 1237 % COUNT); /* 1237 and COUNT have no common factor */
        attn_buffer_format(
            &header, "%s\"layer.%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
            i ? "," : "", place, place, place + 1);
    }
    attn_buffer_add_text(&header, "}");
    struct safetensors *file = open_valid(header.data, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%zu", i);
        assert_ptr_equal(safetensors_find(file, name), safetensors_at(file, i));
    }
    assert_null(safetensors_find(file, "layer.3000"));
    safetensors_close(file);
    attn_buffer_release(&header);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct attn_error error;
    struct safetensors *file;
    assert_false(safetensors_open(&file, "/nowhere/model.safetensors", &error));
    assert_null(file);
    assert_string_equal(error.message, "/nowhere/model.safetensors: no such file");
    assert_false(safetensors_open(&file, "/", &error));
    assert_message(&error, "is a folder");
    safetensors_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_lengths),
        cmocka_unit_test(headers_that_are_not_json),
        cmocka_unit_test(deep_headers),
        cmocka_unit_test(metadata),
        cmocka_unit_test(entries_that_are_no_tensors),
        cmocka_unit_test(numbers_that_are_no_sizes),
        cmocka_unit_test(offsets_that_do_not_fit_the_shape),
        cmocka_unit_test(shapes_whose_product_wraps),
        cmocka_unit_test(ranks),
        cmocka_unit_test(holes_and_overlaps),
        cmocka_unit_test(truncated_data),
        cmocka_unit_test(tensors_come_in_the_order_of_their_data),
        cmocka_unit_test(names_are_json_strings),
        cmocka_unit_test(a_name_cannot_hide_what_is_wrong),
        cmocka_unit_test(many_tensors_are_found),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
