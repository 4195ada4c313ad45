#include "format/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "model_file.h"
#include "scratch_folder.h"

static const char index_name[] = "model.safetensors.index.json";

static int make_folder(void **state)
{
    *state = scratch_folder_create();
    return 0;
}

static int remove_folder(void **state)
{
    scratch_folder_remove(*state);
    return 0;
}

/* A file with one tensor of `size` bytes. */
static void write_one(const char *folder, const char *file, const char *tensor, int size)
{
    char header[256];
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", tensor, size,
             size);
    write_safetensors(folder, file, header, (size_t)size);
}

static void check_refused(const char *folder, const char *words)
{
    struct attn_error error;
    struct checkpoint *checkpoint;
    assert_false(checkpoint_open(&checkpoint, folder, &error));
    assert_null(checkpoint);
    assert_message(&error, folder);
    assert_message(&error, words);
}

static struct checkpoint *open_valid(const char *folder)
{
    struct attn_error error;
    struct checkpoint *checkpoint;
    if (!checkpoint_open(&checkpoint, folder, &error))
        fail_msg("%s", error.message);
    return checkpoint;
}

static void one_file(void **state)
{
    write_safetensors(*state, "model.safetensors",
                      "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
                      3);
    struct checkpoint *checkpoint = open_valid(*state);
    assert_int_equal(checkpoint_count(checkpoint), 2);
    assert_int_equal(checkpoint_find(checkpoint, "a")->data[0], 1);
    assert_int_equal(checkpoint_find(checkpoint, "b")->data[0], 0);
    assert_null(checkpoint_find(checkpoint, "c"));
    for (size_t i = 0; i < 2; i++) {
        const struct stored_tensor *tensor = checkpoint_at(checkpoint, i);
        assert_ptr_equal(checkpoint_find(checkpoint, tensor->name), tensor);
    }
    checkpoint_close(checkpoint);
    checkpoint_close(NULL);
}

static void the_index_decides(void **state)
{
    /* Both shards hold "x"; the index takes it from the second one and does not name "y". */
    write_safetensors(*state, "one.safetensors",
                      "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                      2);
    write_safetensors(*state, "sub/two.safetensors",
                      "{\"y\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]},"
                      "\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[5,6]}}",
                      6);
    scratch_write_text(*state, "model.safetensors", "not a model, and not read");
    scratch_write_text(
        *state, index_name,
        "{\"weight_map\":{\"x\":\"sub/two.safetensors\",\"w\":\"one.safetensors\"}}");
    struct checkpoint *checkpoint = open_valid(*state);
    assert_int_equal(checkpoint_count(checkpoint), 2);
    assert_int_equal(checkpoint_find(checkpoint, "x")->data[0], 5);
    assert_int_equal(checkpoint_find(checkpoint, "w")->data[0], 1);
    assert_null(checkpoint_find(checkpoint, "y"));
    checkpoint_close(checkpoint);
}

static void an_empty_index_is_a_model_without_tensors(void **state)
{
    scratch_write_text(*state, index_name, "{\"weight_map\":{}}");
    struct checkpoint *checkpoint = open_valid(*state);
    assert_int_equal(checkpoint_count(checkpoint), 0);
    assert_null(checkpoint_find(checkpoint, "a"));
    checkpoint_close(checkpoint);
}

/* Points the index at `shard`, which would open: a name that leaves is refused before that. */
static void check_leaves(const char *folder, const char *shard)
{
    struct attn_buffer text = {0};
    struct attn_buffer words = {0};
    attn_buffer_format(&text, "{\"weight_map\":{\"a\":\"missing.safetensors\",\"b\":\"%s\"}}",
                       shard);
    attn_buffer_format(&words, "shard name %s leaves the directory", shard);
    scratch_write_text(folder, "model/model.safetensors.index.json", text.data);
    char *model = attn_path_join(folder, "model");
    check_refused(model, words.data);
    free(model);
    attn_buffer_release(&words);
    attn_buffer_release(&text);
}

static void shard_names_stay_in_the_directory(void **state)
{
    write_one(*state, "outside.safetensors", "b", 1);
    char *absolute = attn_path_join(*state, "outside.safetensors");
    check_leaves(*state, "../outside.safetensors");
    check_leaves(*state, "sub/../../outside.safetensors");
    check_leaves(*state, "x/..");
    check_leaves(*state, "..");
    check_leaves(*state, "/etc/hostname");
    check_leaves(*state, absolute);
    free(absolute);
}

static void dots_in_a_shard_name_are_letters(void **state)
{
    write_one(*state, "..a.safetensors", "a", 1);
    write_one(*state, "...", "b", 1);
    scratch_write_text(*state, index_name,
                       "{\"weight_map\":{\"a\":\"..a.safetensors\",\"b\":\"...\"}}");
    checkpoint_close(open_valid(*state));
}

static void broken_indexes(void **state)
{
    const char *const texts[][2] = {
        {"", "is not valid JSON"},
        {"[]", "holds no JSON object"},
        {"{}", "has no weight_map"},
        {"{\"weight_map\":[]}", "has no weight_map"},
        {"{\"weight_map\":{\"a\":1}}", "tensor a has no shard name"},
        {"{\"weight_map\":{\"a\":\"\"}}", "tensor a has no shard name"},
        {"{\"weight_map\":{\"a\":\"x\",\"a\":\"x\"}}", "is not valid JSON"},
        {"{\"weight_map\":{\"a\":\".\"}}", "is a folder, expected a file"},
    };
    write_one(*state, "model.safetensors", "a", 1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        scratch_write_text(*state, index_name, texts[i][0]);
        check_refused(*state, texts[i][1]);
    }
}

static void a_missing_or_broken_shard_is_named(void **state)
{
    write_one(*state, "one.safetensors", "a", 3);
    scratch_write_text(*state, index_name,
                       "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
    check_refused(*state, "two.safetensors: no such file");
    scratch_write_text(*state, "two.safetensors", "short");
    check_refused(*state, "two.safetensors: the file is shorter than 8 bytes");
    write_one(*state, "two.safetensors", "c", 3);
    check_refused(*state, "two.safetensors has no tensor b");
    write_one(*state, "two.safetensors", "b", 3);
    checkpoint_close(open_valid(*state));
}

static void no_weights(void **state)
{
    check_refused(*state, "has neither model.safetensors nor model.safetensors.index.json");
    scratch_write_text(*state, "pytorch_model.bin", "pickled");
    check_refused(*state, "pytorch_model.bin must be converted to safetensors");
    char *missing = attn_path_join(*state, "missing");
    check_refused(missing, "no such folder");
    free(missing);
}

static void the_real_model(void **state)
{
    (void)state;
    const char *directory = getenv("ATTN_TEST_MODEL");
    if (!directory || !*directory)
        skip_because("ATTN_TEST_MODEL is not set");
    struct checkpoint *checkpoint = open_valid(directory);
    const struct stored_tensor *words =
        checkpoint_find(checkpoint, "embeddings.word_embeddings.weight");
    assert_non_null(words);
    char shape[64];
    stored_tensor_shape_text(words, shape, sizeof shape);
    assert_string_equal(shape, "[30522, 384]");
    assert_string_equal(stored_type_name(words->type), "F32");
    checkpoint_close(checkpoint);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_file),
        TEST(the_index_decides),
        TEST(an_empty_index_is_a_model_without_tensors),
        TEST(shard_names_stay_in_the_directory),
        TEST(dots_in_a_shard_name_are_letters),
        TEST(broken_indexes),
        TEST(a_missing_or_broken_shard_is_named),
        TEST(no_weights),
        cmocka_unit_test(the_real_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
