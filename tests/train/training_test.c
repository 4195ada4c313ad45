#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation_sweep.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "tiny_training.h"

/* That training_begin is refused with these words, and leaves no folder behind. */
static void assert_begin_refused(struct tiny_training *tiny, const char *words)
{
    struct training training;
    struct attn_error error = {""};
    char *path = tiny_training_path(tiny, "refused");
    tiny->request.directory = path;
    assert_false(training_begin(&training, &tiny->request, &error));
    assert_message(&error, words);
    assert_false(attn_path_exists(path));
    free(path);
}

static void assert_resume_refused(struct tiny_training *tiny, const char *name, int64_t steps,
                                  const char *words)
{
    struct training training;
    struct attn_error error = {""};
    char *path = tiny_training_path(tiny, name);
    assert_false(training_resume(&training, path, tiny->corpus, steps, 1, tiny->processes, &error));
    assert_message(&error, words);
    free(path);
}

static void test_texts_that_are_refused(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    scratch_write_text(tiny.folder, "corpus.txt", "");
    assert_begin_refused(&tiny, "corpus.txt: is empty");
    scratch_write_text(tiny.folder, "corpus.txt", "too short");
    assert_begin_refused(&tiny, "a sequence of --ctx 12 needs 13");
    scratch_write_text(tiny.folder, "corpus.txt",
                       "fa\xe7"
                       "ade facade facade");
    assert_begin_refused(&tiny, "byte 2 is not valid UTF-8");
    tiny.request.corpus = "/no/such/file";
    assert_begin_refused(&tiny, "/no/such/file: no such file");
    tiny_training_destroy(&tiny);
}

static void test_settings_that_are_refused(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    tiny.request.settings.accumulate = 4;
    assert_begin_refused(&tiny, "--batch is 6");
    tiny.request.settings.accumulate = 1;
    tiny.request.sizes.heads = 3;
    assert_begin_refused(&tiny, "heads");
    tiny_training_destroy(&tiny);
}

static void test_a_folder_that_is_taken(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    tiny_training_run(&tiny, "taken", 1, NULL);
    struct training training;
    struct attn_error error = {""};
    char *path = tiny_training_path(&tiny, "taken");
    tiny.request.directory = path;
    assert_false(training_begin(&training, &tiny.request, &error));
    assert_message(&error, "holds a training already; --resume ");
    assert_int_equal(scratch_count(path), 5);
    free(path);
    tiny_training_destroy(&tiny);
}

static void test_resumes_that_are_refused(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    tiny_training_run(&tiny, "run", 5, NULL);
    assert_resume_refused(&tiny, "none", 0, "none/training.safetensors: no such file");
    assert_resume_refused(&tiny, "run", 9, "--steps is 9");
    char *text = scratch_read_text(tiny.folder, "corpus.txt");
    text[3] ^= 1;
    scratch_write_text(tiny.folder, "corpus.txt", text);
    assert_resume_refused(&tiny, "run", 0, "is not the text");
    text[3] ^= 1;
    scratch_write_text(tiny.folder, "corpus.txt", text);
    free(text);
    tiny_training_resume(&tiny, "run", 1);
    scratch_write_text(tiny.folder, "run/training.safetensors", "not a training");
    assert_resume_refused(&tiny, "run", 0, "run/training.safetensors");
    tiny_training_destroy(&tiny);
}

/* More steps than the training was begun with. */
static void test_steps_may_grow(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    struct training training;
    struct attn_error error;
    tiny_training_run(&tiny, "run", 0, NULL);
    char *path = tiny_training_path(&tiny, "run");
    assert_true(training_resume(&training, path, tiny.corpus, 14, 1, tiny.processes, &error));
    assert_int_equal(training.state.step, 10);
    assert_int_equal(training.state.settings.schedule.total, 14);
    struct trainer_watch watch = {0};
    struct trainer_result result;
    bool alone;
    assert_true(trainer_run(&training, 0, &watch, &result, &alone, &error));
    assert_int_equal(training.state.step, 14);
    training_close(&training);
    assert_true(training_resume(&training, path, tiny.corpus, 0, 1, tiny.processes, &error));
    assert_int_equal(training.state.settings.schedule.total, 14);
    training_close(&training);
    free(path);
    tiny_training_destroy(&tiny);
}

/* Sizes, tokenizer and weights are the checkpoint's; the optimizer begins anew. */
static void check_fine_tuning(enum train_objective objective)
{
    struct tiny_training tiny = tiny_training_create(objective);
    struct training training;
    struct attn_error error = {""};
    tiny_training_run(&tiny, "base", 0, NULL);
    char *base = tiny_training_path(&tiny, "base"), *path = tiny_training_path(&tiny, "tuned");
    tiny.request.checkpoint = base;
    tiny.request.directory = path;
    tiny.request.sizes = (struct language_model_settings){0};
    tiny.request.settings.objective = TRAIN_GPT; /* not given: the model's kind goes before it */
    tiny.request.settings.context = 512;
    if (!training_begin(&training, &tiny.request, &error))
        fail_msg("%s", error.message);
    assert_int_equal(training.state.settings.objective, objective);
    assert_int_equal(training.state.settings.context, 12);
    assert_int_equal(training.state.step, 0);
    struct language_model *model;
    assert_true(language_model_open(&model, base, 0, &error));
    const struct parameters *before = language_model_parameters(model);
    const struct parameters *after = language_model_parameters(training.model);
    assert_int_equal(before->count, after->count);
    assert_memory_equal(before->values, after->values, (size_t)before->count * sizeof(float));
    language_model_close(model);
    training_close(&training);
    training_folder_undo(&training.folder);
    free(path);
    free(base);
    tiny_training_destroy(&tiny);
}

static void test_fine_tuning(void **state)
{
    (void)state;
    check_fine_tuning(TRAIN_GPT);
    check_fine_tuning(TRAIN_MLM);
}

static void test_fine_tuning_that_is_refused(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    tiny_training_run(&tiny, "base", 1, NULL);
    char *base = tiny_training_path(&tiny, "base");
    tiny.request.checkpoint = base;
    tiny.request.settings.context = 13;
    tiny.request.context_is_given = true;
    assert_begin_refused(&tiny, "--ctx is 13, but the model has 12 positions");
    tiny.request.settings.context = 12;
    tiny.request.settings.objective = TRAIN_MLM;
    tiny.request.objective_is_given = true;
    assert_begin_refused(&tiny, "is a GPT-2, which learns by --objective gpt");
    tiny.request.checkpoint = tiny.folder;
    assert_begin_refused(&tiny, tiny.folder);
    free(base);
    tiny_training_destroy(&tiny);
}

struct sweep {
    struct tiny_training *tiny;
    const char *path;
};

/* A whole training: begun, one step, saved, resumed, another step. Folders are new every time. */
static bool train_twice(void *user, struct attn_error *error)
{
    struct sweep *sweep = user;
    struct training training;
    struct trainer_watch watch = {0};
    struct trainer_result result;
    bool alone;
    if (!training_begin(&training, &sweep->tiny->request, error))
        return false;
    bool done = trainer_run(&training, 1, &watch, &result, &alone, error);
    training_close(&training);
    if (!done || !training_resume(&training, sweep->path, sweep->tiny->corpus, 0, 1,
                                  sweep->tiny->processes, error))
        return false;
    done = trainer_run(&training, 1, &watch, &result, &alone, error);
    training_close(&training);
    return done;
}

void *__real_malloc(size_t size);
char *__real_strdup(const char *text);

/* In a folder that is emptied before. */
static bool train_anew(void *user, struct attn_error *error)
{
    struct sweep *sweep = user;
    if (access(sweep->path, F_OK) == 0)
        scratch_folder_remove(__real_strdup(sweep->path));
    return train_twice(sweep, error);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    json_set_alloc_funcs(__real_malloc, free);
    const enum train_objective objectives[] = {TRAIN_GPT, TRAIN_MLM};
    for (int i = 0; i < 2; i++) {
        struct tiny_training tiny = tiny_training_create(objectives[i]);
        char *path = tiny_training_path(&tiny, "swept");
        scratch_write_text(tiny.folder, "corpus.txt",
                           "the cat sees it. the dog sees it. the cat paints it. a dog sees it.\n");
        tiny.request.directory = path;
        tiny.request.sizes.layers = 1;
        struct sweep sweep = {&tiny, path};
        assert_true(allocation_sweep(train_anew, &sweep) > 100);
        free(path);
        tiny_training_destroy(&tiny);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_that_are_refused),
        cmocka_unit_test(test_settings_that_are_refused),
        cmocka_unit_test(test_a_folder_that_is_taken),
        cmocka_unit_test(test_resumes_that_are_refused),
        cmocka_unit_test(test_steps_may_grow),
        cmocka_unit_test(test_fine_tuning),
        cmocka_unit_test(test_fine_tuning_that_is_refused),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
