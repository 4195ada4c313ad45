#include "base/json_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

/* Opens `text` as a JSON file; the object, or NULL with the error filled. */
static json_t *read_text(const char *text, size_t size, size_t limit, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    scratch_write(folder, "config.json", text, size);
    char *path = attn_path_join(folder, "config.json");
    json_t *object;
    bool read = attn_json_read_object(path, limit, &object, error);
    assert_true(read == (object != NULL));
    if (!read)
        assert_message(error, path);
    free(path);
    scratch_folder_remove(folder);
    return object;
}

static void objects_are_read(void **state)
{
    (void)state;
    struct attn_error error;
    const char text[] = " {\"a\": {\"b\": [1, 2.5, null]}, \"\\u00e9\": \"x\"}\n";
    json_t *object = read_text(text, sizeof text - 1, sizeof text - 1, &error);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "\xc3\xa9")), "x");
    json_decref(object);
}

static void check_refused(const char *text, size_t size, size_t limit, const char *words)
{
    struct attn_error error;
    assert_null(read_text(text, size, limit, &error));
    assert_message(&error, words);
}

static void other_text_is_refused(void **state)
{
    (void)state;
    check_refused("", 0, 100, "line 1 is not valid JSON");
    check_refused("{\n\"a\": 1,\n}", 12, 100, "line 3 is not valid JSON");
    check_refused("{\"a\": 1} x", 10, 100, "not valid JSON");
    check_refused("{\"a\": 1, \"a\": 2}", 16, 100, "not valid JSON");
    check_refused("{\"a\": \"\xff\"}", 10, 100, "not valid JSON");
    check_refused("{\"a\": 1}\0", 9, 100, "not valid JSON");
    check_refused("{\"a\": 99999999999999999999}", 27, 100, "not valid JSON");
    check_refused("[1]", 3, 100, "holds no JSON object");
    check_refused("7", 1, 100, "holds no JSON object");
    check_refused("{\"a\": 1}", 8, 7, "at most 7 are allowed");
}

static void arrays_are_read(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    scratch_write_text(folder, "modules.json", "[{\"idx\": 0}, 2]");
    scratch_write_text(folder, "config.json", "{}");
    char *array_path = attn_path_join(folder, "modules.json");
    char *object_path = attn_path_join(folder, "config.json");
    struct attn_error error;
    json_t *array;
    assert_true(attn_json_read_array(array_path, 100, &array, &error));
    assert_int_equal(json_array_size(array), 2);
    json_decref(array);
    assert_false(attn_json_read_array(object_path, 100, &array, &error));
    assert_null(array);
    assert_message(&error, "config.json: holds no JSON array");
    free(array_path);
    free(object_path);
    scratch_folder_remove(folder);
}

static void a_deep_value_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    char *text = malloc(DEPTH + 6);
    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', DEPTH);
    check_refused(text, DEPTH + 5, DEPTH + 6, "not valid JSON");
    free(text);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    struct attn_error error;
    json_t *object;
    assert_false(attn_json_read_object("/nowhere/config.json", 10, &object, &error));
    assert_null(object);
    assert_string_equal(error.message, "/nowhere/config.json: no such file");
}

static void integers(void **state)
{
    (void)state;
    json_t *object = json_pack("{s:i, s:f, s:s, s:n, s:[], s:i, s:b}", "layers", 6, "real", 6.0,
                               "text", "6", "nothing", "list", "negative", -1, "flag", 1);
    struct attn_error error;
    const long long fallback = 12;
    long long value = 0;
    assert_true(attn_json_integer(object, "x/c.json", "layers", 1, 6, NULL, &value, &error));
    assert_int_equal(value, 6);
    assert_true(attn_json_integer(object, "x/c.json", "absent", 1, 6, &fallback, &value, &error));
    assert_int_equal(value, 12);
    value = 0;
    assert_true(attn_json_integer(object, "x/c.json", "nothing", 1, 6, &fallback, &value, &error));
    assert_int_equal(value, 12);

    const struct {
        const char *name, *message;
    } refused[] = {
        {"absent", "c.json has no absent"},
        {"nothing", "c.json has no nothing"},
        {"layers", "c.json: layers is 6, expected a whole number in 7..9"},
        {"negative", "c.json: negative is -1, expected a whole number in 7..9"},
        {"real", "c.json: real is 6.0, expected a whole number in 7..9"},
        {"text", "c.json: text is \"6\", expected a whole number in 7..9"},
        {"list", "c.json: list is an array, expected a whole number in 7..9"},
        {"flag", "c.json: flag is true, expected a whole number in 7..9"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        value = 77;
        assert_false(
            attn_json_integer(object, "x/c.json", refused[i].name, 7, 9, NULL, &value, &error));
        assert_string_equal(error.message, refused[i].message);
        assert_int_equal(value, 77);
    }
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_read),        cmocka_unit_test(arrays_are_read),
        cmocka_unit_test(other_text_is_refused),   cmocka_unit_test(a_deep_value_is_refused),
        cmocka_unit_test(a_missing_file_is_named), cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
