/* The handed model files: tests/data/cases/files. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "format/checkpoint.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "model_file.h"

/* What a case is opened with: one file of either kind, or a directory of shards. */
struct opened {
    struct safetensors *file;
    struct gguf *gguf;
    struct checkpoint *shards;
};

static bool is_gguf(const char *file)
{
    const char *end = strrchr(file, '.');
    return end && strcmp(end, ".gguf") == 0;
}

static bool open_case(const json_t *input, struct opened *opened, struct attn_error *error)
{
    *opened = (struct opened){0};
    const char *file = json_string_value(json_object_get(input, "file"));
    const char *directory = json_string_value(json_object_get(input, "directory"));
    char *folder = test_data_path("cases/files");
    char *path = attn_path_join(folder, file ? file : directory);
    bool done = !file           ? checkpoint_open(&opened->shards, path, error)
                : is_gguf(file) ? gguf_open(&opened->gguf, path, error)
                                : safetensors_open(&opened->file, path, error);
    free(path);
    free(folder);
    return done;
}

static void close_case(struct opened *opened)
{
    safetensors_close(opened->file);
    gguf_close(opened->gguf);
    checkpoint_close(opened->shards);
}

/* Alternatives stand behind ", or ": the first one is what is said here. */
static void check_refusal(const char *message, const char *expected)
{
    const char *alternative = strstr(expected, ", or ");
    size_t size = alternative ? (size_t)(alternative - expected) : strlen(expected);
    char *words = strndup(expected, size);
    if (!strstr(message, words))
        fail_msg("the message is \"%s\", expected one with \"%s\"", message, words);
    free(words);
}

static size_t tensor_count(const struct opened *opened)
{
    return opened->file   ? safetensors_count(opened->file)
           : opened->gguf ? gguf_tensor_count(opened->gguf)
                          : checkpoint_count(opened->shards);
}

static const struct stored_tensor *find_tensor(const struct opened *opened, const char *name)
{
    return opened->file   ? safetensors_find(opened->file, name)
           : opened->gguf ? gguf_tensor(opened->gguf, name)
                          : checkpoint_find(opened->shards, name);
}

static void check_tensors(const struct opened *opened, json_t *tensors)
{
    assert_int_equal(tensor_count(opened), json_object_size(tensors));
    const char *name;
    json_t *expected;
    json_object_foreach (tensors, name, expected) {
        const struct stored_tensor *tensor = find_tensor(opened, name);
        assert_non_null(tensor);
        assert_tensor(tensor, json_object_get(expected, "shape"),
                      json_object_get(expected, "data"));
    }
}

static void check_case(void **state)
{
    const json_t *test = *state;
    const json_t *expected = json_object_get(test, "expected");
    const char *refused = json_string_value(json_object_get(expected, "refused"));
    struct attn_error error = {""};
    struct opened opened;
    bool done = open_case(json_object_get(test, "input"), &opened, &error);
    if (refused) {
        assert_false(done);
        check_refusal(error.message, refused);
    } else {
        if (!done)
            fail_msg("%s", error.message);
        check_tensors(&opened, json_object_get(expected, "tensors"));
        const char *key;
        json_t *value;
        json_object_foreach (json_object_get(test, "metadata"), key, value)
            assert_string_equal(safetensors_metadata(opened.file, key), json_string_value(value));
    }
    close_case(&opened);
}

static bool is_ours(const json_t *test)
{
    const char *kind = json_string_value(json_object_get(test, "kind"));
    const char *op = json_string_value(json_object_get(test, "op"));
    return strncmp(kind, "st-", 3) == 0 || strcmp(kind, "shards") == 0 ||
           (strncmp(kind, "gguf-", 5) == 0 && strcmp(op, "container") == 0);
}

int main(void)
{
    json_t *file = test_data_json("cases/files/files.json");
    const json_t *cases = json_object_get(file, "cases");
    struct CMUnitTest tests[64] = {0};
    size_t count = 0;
    size_t i;
    json_t *test;
    json_array_foreach (cases, i, test) {
        if (!is_ours(test))
            continue;
        if (count == sizeof tests / sizeof *tests)
            return 1;
        tests[count++] = (struct CMUnitTest){
            .name = json_string_value(json_object_get(test, "name")),
            .test_func = check_case,
            .initial_state = test,
        };
    }
    int failed = _cmocka_run_group_tests("handed model files", tests, count, NULL, NULL);
    json_decref(file);
    return count > 0 ? failed : 1;
}
