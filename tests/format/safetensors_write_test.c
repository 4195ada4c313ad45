/* Written safetensors files: read back, and what becomes of those that cannot be written. */
#include "format/safetensors_write.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "format/safetensors.h"
#include "scratch_folder.h"

enum { LARGE = 40000 }; /* more than one piece of the writer's */

static const int64_t matrix[] = {3, 5}, vector[] = {1}, empty[] = {0, 7}, large[] = {LARGE};
static float numbers[LARGE];

static const struct written_tensor tensors[] = {
    {"h.0.attn.c_attn.weight", 2, matrix, numbers},
    {"scalar", 0, NULL, numbers + 15},
    {"quoted \"name\" \\ é", 1, vector, numbers + 16},
    {"empty", 2, empty, numbers},
    {"large", 1, large, numbers},
};
enum { COUNT = sizeof tensors / sizeof tensors[0] };

static int make_folder(void **state)
{
    for (int i = 0; i < LARGE; i++)
        numbers[i] = (float)(i - 1000) / 7.0f;
    *state = scratch_folder_create();
    return 0;
}

static int remove_folder(void **state)
{
    scratch_folder_remove(*state);
    return 0;
}

static void what_is_written_is_read(void **state)
{
    static const char *const metadata[] = {"format", "pt", "a \"key\"", "<value>"};
    char *path = attn_path_join(*state, "model.safetensors");
    struct attn_error error;
    if (!safetensors_write(path, tensors, COUNT, metadata, 4, &error))
        fail_msg("%s", error.message);

    struct safetensors *file;
    if (!safetensors_open(&file, path, &error))
        fail_msg("%s", error.message);
    assert_int_equal(safetensors_count(file), COUNT);
    for (size_t n = 0; n < COUNT; n++) {
        const struct stored_tensor *found = safetensors_find(file, tensors[n].name);
        assert_non_null(found);
        assert_int_equal(found->type, STORED_F32);
        assert_int_equal(found->rank, tensors[n].rank);
        for (int i = 0; i < found->rank; i++)
            assert_int_equal(found->shape[i], tensors[n].shape[i]);
        assert_memory_equal(found->data, tensors[n].data, found->size);
        assert_non_null(stored_tensor_as_floats(found)); /* aligned for use in place */
    }
    assert_string_equal(safetensors_metadata(file, "format"), "pt");
    assert_string_equal(safetensors_metadata(file, "a \"key\""), "<value>");
    safetensors_close(file);
    free(path);
}

/* Whatever the header's length is. */
static void data_begin_at_a_multiple_of_64(void **state)
{
    char *path = attn_path_join(*state, "model.safetensors");
    for (size_t length = 1; length <= 70; length++) {
        char name[80] = "";
        memset(name, 'n', length);
        const struct written_tensor tensor = {name, 2, matrix, numbers};
        struct attn_error error;
        assert_true(safetensors_write(path, &tensor, 1, NULL, 0, &error));
        char *bytes;
        size_t size;
        assert_true(attn_file_read(path, 1000, &bytes, &size, &error));
        assert_int_equal((size - 15 * sizeof(float)) % 64, 0);
        assert_memory_equal(bytes + size - 15 * sizeof(float), numbers, 15 * sizeof(float));
        free(bytes);
    }
    free(path);
}

static void a_file_without_tensors_is_one(void **state)
{
    char *path = attn_path_join(*state, "model.safetensors");
    struct attn_error error;
    struct safetensors *file;
    assert_true(safetensors_write(path, NULL, 0, NULL, 0, &error));
    assert_true(safetensors_open(&file, path, &error));
    assert_int_equal(safetensors_count(file), 0);
    safetensors_close(file);
    free(path);
}

/* A limit on file sizes stands in for a disk that fills, while the header and while data are
 * written. */
static void a_full_disk_leaves_the_old_file(void **state)
{
    scratch_write_text(*state, "model.safetensors", "old");
    char *path = attn_path_join(*state, "model.safetensors");
    const rlim_t limits[] = {20, 4096, LARGE * sizeof(float) / 2};
    for (size_t n = 0; n < sizeof limits / sizeof limits[0]; n++) {
        struct rlimit before;
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        const struct rlimit small = {.rlim_cur = limits[n], .rlim_max = before.rlim_max};
        void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        struct attn_error error;
        bool written = safetensors_write(path, tensors, COUNT, NULL, 0, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        signal(SIGXFSZ, handler);

        assert_false(written);
        assert_message(&error, "model.safetensors: cannot be written: ");
        assert_int_equal(scratch_count(*state), 1);
        char *text = scratch_read_text(*state, "model.safetensors");
        assert_string_equal(text, "old");
        free(text);
    }
    free(path);
}

static void refused(void **state)
{
    static const int64_t huge[] = {INT64_MAX / 4, 3}, negative[] = {-1};
    const struct written_tensor wrong[] = {{"huge", 2, huge, numbers},
                                           {"negative", 1, negative, numbers}};
    char *path = attn_path_join(*state, "model.safetensors");
    struct attn_error error;
    for (size_t n = 0; n < 2; n++) {
        assert_false(safetensors_write(path, &wrong[n], 1, NULL, 0, &error));
        assert_message(&error, wrong[n].name);
        assert_message(&error, "too large");
    }
    assert_false(safetensors_write("/nowhere/model.safetensors", tensors, 1, NULL, 0, &error));
    assert_message(&error, "there is no such folder");
    assert_int_equal(scratch_count(*state), 0);
    if (access("/dev/full", W_OK) == 0) {
        assert_false(safetensors_write("/dev/full", tensors, COUNT, NULL, 0, &error));
        assert_message(&error, "/dev/full: cannot be written: ");
    }
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(data_begin_at_a_multiple_of_64),
        TEST(a_file_without_tensors_is_one),
        TEST(a_full_disk_leaves_the_old_file),
        TEST(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
