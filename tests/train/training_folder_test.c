#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocation_sweep.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "train/training_folder.h"

static void test_a_new_folder(void **state)
{
    (void)state;
    char *scratch = scratch_folder_create(), *path = attn_path_join(scratch, "model");
    struct training_folder folder;
    struct attn_error error;
    assert_true(training_folder_open(&folder, path, &error));
    assert_true(training_folder_add_tokenizer(&folder, "{}", 2, &error));
    scratch_write_text(path, "config.json", "{}");
    char *text = scratch_read_text(path, "tokenizer.json");
    assert_string_equal(text, "{}");
    free(text);
    struct training_folder again;
    assert_false(training_folder_open(&again, path, &error));
    assert_message(&error, "another process trains in it");
    assert_false(training_folder_reopen(&again, path, &error));
    assert_message(&error, "another process trains in it");
    training_folder_close(&folder);
    /* What it holds now is a model. */
    assert_false(training_folder_open(&again, path, &error));
    assert_message(&error, "holds config.json already");
    assert_true(training_folder_reopen(&again, path, &error));
    training_folder_close(&again);
    training_folder_undo(&folder);
    assert_false(attn_path_exists(path));
    scratch_folder_remove(scratch);
    free(path);
}

/* A folder that was there stays, with what was in it. */
static void test_a_folder_that_was_there(void **state)
{
    (void)state;
    char *scratch = scratch_folder_create();
    struct training_folder folder;
    struct attn_error error;
    scratch_write_text(scratch, "notes.txt", "mine");
    scratch_write_text(scratch, "merges.txt", "mine");
    assert_true(training_folder_open(&folder, scratch, &error));
    assert_true(training_folder_add_tokenizer(&folder, "{}", 2, &error));
    assert_int_equal(scratch_count(scratch), 3);
    training_folder_undo(&folder);
    assert_int_equal(scratch_count(scratch), 2);
    scratch_folder_remove(scratch);
}

static void test_copies(void **state)
{
    (void)state;
    char *source = scratch_folder_create(), *target = scratch_folder_create();
    struct training_folder folder;
    struct attn_error error;
    scratch_write_text(source, "vocab.json", "{\"a\": 0}");
    scratch_write_text(source, "merges.txt", "#version\n");
    scratch_write_text(source, "config.json", "{}");
    assert_true(training_folder_open(&folder, target, &error));
    assert_true(training_folder_copy_tokenizer(&folder, source, &error));
    assert_int_equal(scratch_count(target), 2);
    char *text = scratch_read_text(target, "vocab.json");
    assert_string_equal(text, "{\"a\": 0}");
    free(text);
    training_folder_undo(&folder);
    assert_int_equal(scratch_count(target), 0);
    scratch_folder_remove(source);
    scratch_folder_remove(target);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const occupied[][2] = {{"training.safetensors", "--resume"},
                                              {"model.safetensors", "model.safetensors"},
                                              {"config.json", "holds config.json"},
                                              {"training.csv", "training.csv"},
                                              {"model.safetensors.index.json", "index"}};
    struct training_folder folder;
    struct attn_error error = {""};
    for (size_t i = 0; i < sizeof occupied / sizeof occupied[0]; i++) {
        char *scratch = scratch_folder_create();
        scratch_write_text(scratch, occupied[i][0], "");
        assert_false(training_folder_open(&folder, scratch, &error));
        assert_message(&error, occupied[i][1]);
        training_folder_undo(&folder);
        assert_int_equal(scratch_count(scratch), 1);
        scratch_folder_remove(scratch);
    }
    char *scratch = scratch_folder_create();
    scratch_write_text(scratch, "file", "");
    char *path = attn_path_join(scratch, "file");
    assert_false(training_folder_open(&folder, path, &error));
    assert_message(&error, "is a file");
    free(path);
    path = attn_path_join(scratch, "no/such");
    assert_false(training_folder_open(&folder, path, &error));
    assert_message(&error, "cannot be made");
    free(path);
    scratch_folder_remove(scratch);
}

static void test_a_folder_that_is_not_ours(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip_because("root may write everywhere");
    char *scratch = scratch_folder_create();
    struct training_folder folder;
    struct attn_error error = {""};
    assert_int_equal(chmod(scratch, 0555), 0);
    assert_false(training_folder_open(&folder, scratch, &error));
    assert_message(&error, "cannot be written to");
    assert_int_equal(chmod(scratch, 0755), 0);
    scratch_folder_remove(scratch);
}

struct sweep {
    char *folder, *file;
};

static bool open_and_write(void *user, struct attn_error *error)
{
    const struct sweep *sweep = user;
    struct training_folder folder;
    bool done = training_folder_open(&folder, sweep->folder, error) &&
                training_folder_add_tokenizer(&folder, "{}", 2, error);
    training_folder_close(&folder);
    unlink(sweep->file);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    struct sweep sweep = {.folder = scratch_folder_create()};
    sweep.file = attn_path_join(sweep.folder, "tokenizer.json");
    assert_true(allocation_sweep(open_and_write, &sweep) > 5);
    scratch_folder_remove(sweep.folder);
    free(sweep.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_folder),
        cmocka_unit_test(test_a_folder_that_was_there),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_folder_that_is_not_ours),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
