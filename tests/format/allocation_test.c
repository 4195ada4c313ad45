/* A failing allocation at any place is reported, and nothing is held or left behind. */
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "base/buffer.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "format/checkpoint.h"
#include "format/gguf.h"
#include "format/safetensors_write.h"
#include "model_file.h"
#include "scratch_folder.h"

static bool open_checkpoint(void *user, struct attn_error *error)
{
    struct checkpoint *checkpoint;
    if (!checkpoint_open(&checkpoint, user, error)) {
        assert_null(checkpoint);
        return false;
    }
    size_t count = checkpoint_count(checkpoint);
    checkpoint_close(checkpoint);
    return count == 2;
}

static void checkpoints(void **state)
{
    (void)state;
    char *sharded = test_data_path("cases/files/shards-good");
    assert_true(allocation_sweep(open_checkpoint, sharded) >= 20);
    free(sharded);

    char *folder = scratch_folder_create();
    write_safetensors(folder, "model.safetensors",
                      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
                      3);
    assert_true(allocation_sweep(open_checkpoint, folder) >= 8);
    scratch_folder_remove(folder);
}

static bool open_gguf(void *user, struct attn_error *error)
{
    struct gguf *file;
    if (!gguf_open(&file, user, error)) {
        assert_null(file);
        return false;
    }
    struct gguf_string *texts = NULL;
    int32_t *integers = NULL;
    size_t count;
    bool done = gguf_texts(file, "array.strings", GGUF_REQUIRED, &texts, &count, error) &&
                gguf_integers(file, "array.integers", GGUF_REQUIRED, &integers, &count, error);
    free(texts);
    free(integers);
    gguf_close(file);
    return done;
}

static void gguf_files(void **state)
{
    (void)state;
    char *path = test_data_path("golden/gguf.gguf");
    assert_true(allocation_sweep(open_gguf, path) >= 40);
    free(path);
}

static bool fill_buffer(void *user, struct attn_error *error)
{
    (void)user;
    struct attn_buffer buffer = {0};
    for (int i = 0; i < 1000; i++) {
        attn_buffer_format(&buffer, "%d ", i);
        attn_buffer_add_json_string(&buffer, "<text>\n", 7);
        attn_buffer_add_json_float(&buffer, (float)i / 7);
    }
    bool done = !buffer.failed;
    if (buffer.data)
        assert_int_equal(strlen(buffer.data), buffer.size);
    attn_buffer_release(&buffer);
    return done || attn_error_memory(error);
}

static void buffers(void **state)
{
    (void)state;
    assert_true(allocation_sweep(fill_buffer, NULL) > 5);
}

static bool copy_file(void *user, struct attn_error *error)
{
    const char *const *paths = user;
    char *data;
    size_t size;
    if (!attn_file_read(paths[0], SIZE_MAX, &data, &size, error)) {
        assert_null(data);
        return false;
    }
    bool done = attn_file_write(paths[1], data, size, error);
    free(data);
    return done;
}

static void files(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    char *source = test_data_path("cases/files/files.json");
    char *target = attn_path_join(folder, "copy");
    char *paths[] = {source, target};
    assert_true(allocation_sweep(copy_file, paths) >= 3);
    assert_int_equal(scratch_count(folder), 1);
    free(target);
    free(source);
    scratch_folder_remove(folder);
}

static bool write_tensors(void *user, struct attn_error *error)
{
    static const int64_t shape[] = {2, 2};
    static const float numbers[] = {1, 2, 3, 4};
    static const char *const metadata[] = {"format", "pt"};
    const struct written_tensor tensors[] = {{"first", 2, shape, numbers},
                                             {"second", 1, shape, numbers}};
    return safetensors_write(user, tensors, 2, metadata, 2, error);
}

static void written_tensors(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    char *path = attn_path_join(folder, "model.safetensors");
    assert_true(allocation_sweep(write_tensors, path) >= 3);
    assert_int_equal(scratch_count(folder), 1);
    free(path);
    scratch_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints), cmocka_unit_test(gguf_files),      cmocka_unit_test(buffers),
        cmocka_unit_test(files),       cmocka_unit_test(written_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
