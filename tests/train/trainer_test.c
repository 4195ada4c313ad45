#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "tiny_training.h"

static const enum train_objective objectives[] = {TRAIN_GPT, TRAIN_MLM};

static struct training begin(struct tiny_training *tiny, const char *path)
{
    struct training training;
    struct attn_error error;
    tiny->request.directory = path;
    if (!training_begin(&training, &tiny->request, &error))
        fail_msg("%s", error.message);
    return training;
}

/* The handed case: with dropout, shuffling and accumulation. Where the break is does not matter. */
static void test_ten_steps_or_five_and_five(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tiny_training tiny = tiny_training_create(objectives[i]);
        tiny_training_run(&tiny, "whole", 0, NULL);
        tiny_training_run(&tiny, "parts", 5, NULL);
        tiny_training_resume(&tiny, "parts", 0);
        tiny_training_run(&tiny, "more", 3, NULL);
        tiny_training_resume(&tiny, "more", 1);
        tiny_training_resume(&tiny, "more", 4);
        tiny_training_resume(&tiny, "more", 2);
        static const char *const parts[] = {"parts", "more"};
        for (int p = 0; p < 2; p++) {
            assert_same_file(&tiny, "whole", parts[p], "model.safetensors");
            assert_same_file(&tiny, "whole", parts[p], "training.safetensors");
            assert_same_file(&tiny, "whole", parts[p], "config.json");
        }
        tiny_training_destroy(&tiny);
    }
}

/* The rows of a training's log, which the caller closes. */
static struct training_log read_log(const struct tiny_training *tiny, const char *name)
{
    struct training_log log;
    struct attn_error error;
    char *path = tiny_training_path(tiny, name);
    if (!training_log_open(&log, path, INT64_MAX, &error))
        fail_msg("%s", error.message);
    free(path);
    return log;
}

static void assert_same_losses(const struct tiny_training *tiny, const char *one, const char *other,
                               double tolerance)
{
    struct training_log a = read_log(tiny, one), b = read_log(tiny, other);
    assert_int_equal(a.count, 10);
    assert_int_equal(b.count, 10);
    for (size_t n = 0; n < a.count; n++) {
        assert_int_equal(a.rows[n].step, (int64_t)n + 1);
        assert_true(fabs(a.rows[n].loss - b.rows[n].loss) <= tolerance);
        assert_true(fabs(a.rows[n].norm - b.rows[n].norm) <= tolerance);
        assert_true(isnan(a.rows[n].held_out) == isnan(b.rows[n].held_out));
        assert_true(isnan(a.rows[n].held_out) ||
                    fabs(a.rows[n].held_out - b.rows[n].held_out) <= tolerance);
    }
    training_log_close(&a);
    training_log_close(&b);
}

static void test_losses_of_a_resume(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tiny_training tiny = tiny_training_create(objectives[i]);
        tiny_training_run(&tiny, "whole", 0, NULL);
        tiny_training_run(&tiny, "parts", 7, NULL);
        tiny_training_resume(&tiny, "parts", 0);
        assert_same_losses(&tiny, "whole", "parts", 0.0);
        tiny_training_destroy(&tiny);
    }
}

/* Parts of a batch have unequal numbers of masked words: losses and gradients are means over words,
 * never means of the means of parts. */
static void test_accumulation(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tiny_training tiny = tiny_training_create(objectives[i]);
        tiny.request.settings.accumulate = 1;
        tiny_training_run(&tiny, "whole", 0, NULL);
        tiny.request.settings.accumulate = 6;
        tiny_training_run(&tiny, "parts", 0, NULL);
        assert_same_losses(&tiny, "whole", "parts", 1e-5);
        tiny_training_destroy(&tiny);
    }
}

static void test_it_learns(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tiny_training tiny = tiny_training_create(objectives[i]);
        tiny.request.settings.schedule.total = 150;
        tiny.request.settings.schedule.peak = 1e-2;
        tiny.request.settings.dropout = 0.0;
        double first, last;
        tiny_training_run(&tiny, "first", 1, &first);
        tiny_training_run(&tiny, "last", 0, &last);
        if (!(last < 0.92 * first))
            fail_msg("the loss fell from %g to %g only", first, last);
        tiny_training_destroy(&tiny);
    }
}

/* One window again and again at the rate 0: what differs from step to step is dropout. */
static void test_each_step_has_its_own_dropout(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    scratch_write_text(tiny.folder, "corpus.txt", "the cat sees");
    tiny.request.settings.context = 11;
    tiny.request.settings.schedule.peak = 0.0;
    tiny.request.settings.held_out = 0.0;
    tiny_training_run(&tiny, "dropped", 0, NULL);
    tiny.request.settings.dropout = 0.0;
    tiny_training_run(&tiny, "kept", 0, NULL);
    struct training_log dropped = read_log(&tiny, "dropped"), kept = read_log(&tiny, "kept");
    for (size_t n = 1; n < dropped.count; n++) {
        assert_true(dropped.rows[n].loss != dropped.rows[n - 1].loss);
        assert_true(kept.rows[n].loss == kept.rows[n - 1].loss);
    }
    training_log_close(&dropped);
    training_log_close(&kept);
    tiny_training_destroy(&tiny);
}

static bool after_three(void *user)
{
    return ++*(int *)user == 3;
}

static void test_an_interruption_saves(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    tiny_training_run(&tiny, "whole", 0, NULL);
    char *path = tiny_training_path(&tiny, "interrupted");
    struct training training = begin(&tiny, path);
    int asked = 0;
    struct trainer_watch watch = {.interrupted = after_three, .user = &asked};
    struct trainer_result result;
    struct attn_error error;
    bool alone;
    assert_true(trainer_run(&training, 0, &watch, &result, &alone, &error));
    assert_int_equal(result.end, TRAINER_INTERRUPTED);
    assert_true(result.steps >= 1 && result.steps < 10);
    assert_int_equal(result.steps, training.state.step);
    training_close(&training);
    tiny_training_resume(&tiny, "interrupted", 0);
    assert_same_file(&tiny, "whole", "interrupted", "training.safetensors");
    free(path);
    tiny_training_destroy(&tiny);
}

/* All steps done: nothing more to do, and the checkpoint stays as it is. */
static void test_nothing_left(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    tiny_training_run(&tiny, "whole", 0, NULL);
    tiny_training_run(&tiny, "again", 0, NULL);
    tiny_training_resume(&tiny, "again", 0);
    assert_same_file(&tiny, "whole", "again", "training.safetensors");
    tiny_training_destroy(&tiny);
}

struct seen {
    int steps, saves, evaluations;
};

static void see_step(void *user, const struct training *training, const struct log_row *row)
{
    struct seen *seen = user;
    assert_int_equal(row->step, ++seen->steps);
    assert_int_equal(training->state.step, row->step);
    assert_int_equal(training->state.tokens, row->step * 6 * 12);
    seen->evaluations += !isnan(row->held_out);
}

static bool see_save(void *user, const struct training *training, struct attn_error *error)
{
    (void)training, (void)error;
    ((struct seen *)user)->saves++;
    return true;
}

static void test_the_watch(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    char *path = tiny_training_path(&tiny, "watched");
    struct training training = begin(&tiny, path);
    struct seen seen = {0};
    struct trainer_watch watch = {.step = see_step, .saved = see_save, .user = &seen};
    struct trainer_result result;
    struct attn_error error;
    bool alone;
    assert_true(trainer_run(&training, 0, &watch, &result, &alone, &error));
    assert_int_equal(result.end, TRAINER_DONE);
    assert_int_equal(seen.steps, 10);
    assert_int_equal(seen.saves, 4);       /* before the first step, 4, 8, 10 */
    assert_int_equal(seen.evaluations, 4); /* 3, 6, 9, 10 */
    assert_int_equal(result.tokens, 10 * 6 * 12);
    training_close(&training);
    free(path);
    tiny_training_destroy(&tiny);
}

/* A rate that ruins the weights: the run ends with the step, and what was saved can be gone on
 * from. */
static void test_a_loss_that_is_not_finite(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    tiny.request.settings.schedule.peak = 1e9;
    tiny.request.settings.schedule.warmup = 0;
    tiny.request.settings.save_every = 1;
    tiny.request.settings.evaluate_every = 1000;
    tiny.request.settings.schedule.total = 500;
    char *path = tiny_training_path(&tiny, "ruined");
    struct training training = begin(&tiny, path);
    struct trainer_watch watch = {0};
    struct trainer_result result;
    struct attn_error error = {""};
    bool alone;
    assert_false(trainer_run(&training, 0, &watch, &result, &alone, &error));
    assert_false(alone);
    assert_message(&error, "step ");
    assert_message(&error, "finite");
    assert_message(&error, "keeps the checkpoint of step ");
    training_close(&training);
    struct training again;
    if (!training_resume(&again, path, tiny.corpus, 0, 1, tiny.processes, &error))
        fail_msg("%s", error.message);
    struct parameters *parameters = language_model_parameters(again.model);
    for (int64_t n = 0; n < parameters->count; n++)
        assert_true(isfinite(parameters->values[n]));
    training_close(&again);
    free(path);
    tiny_training_destroy(&tiny);
}

/* Breaks the model behind step 3. */
static void break_model(void *user, const struct training *training, const struct log_row *row)
{
    (void)training;
    if (row->step == 3)
        language_model_parameters(user)->values[0] = NAN;
}

static void test_the_step_is_named(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    char *path = tiny_training_path(&tiny, "broken later");
    struct training training = begin(&tiny, path);
    struct trainer_watch watch = {.step = break_model, .user = training.model};
    struct trainer_result result;
    struct attn_error error = {""};
    bool alone;
    assert_false(trainer_run(&training, 0, &watch, &result, &alone, &error));
    assert_message(&error, "step 4: the loss is not finite; ");
    assert_message(&error, "keeps the checkpoint of step 0");
    training_close(&training);
    tiny_training_run(&tiny, "whole", 0, NULL);
    tiny_training_resume(&tiny, "broken later", 0);
    assert_same_file(&tiny, "whole", "broken later", "training.safetensors");
    free(path);
    tiny_training_destroy(&tiny);
}

/* A weight that is not a number shows before it is written anywhere. */
static void test_a_model_that_is_broken_is_not_saved(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    char *path = tiny_training_path(&tiny, "broken");
    struct training training = begin(&tiny, path);
    language_model_parameters(training.model)->values[0] = NAN;
    struct trainer_watch watch = {0};
    struct trainer_result result;
    struct attn_error error = {""};
    bool alone;
    assert_false(trainer_run(&training, 0, &watch, &result, &alone, &error));
    assert_message(&error, "step 0: the loss is no longer finite");
    training_close(&training);
    assert_false(attn_path_exists(path)); /* the folder that it made is gone again */
    free(path);
    tiny_training_destroy(&tiny);
}

/* Runs with files of at most `bytes` bytes: a full disk. */
static bool run_limited(struct training *training, rlim_t bytes, struct attn_error *error)
{
    struct trainer_watch watch = {0};
    struct trainer_result result;
    struct rlimit before, limit;
    bool alone;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    bool done = trainer_run(training, 0, &watch, &result, &alone, error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    return done;
}

static void test_a_full_disk(void **state)
{
    (void)state;
    struct tiny_training tiny = tiny_training_create(TRAIN_GPT);
    struct attn_error error = {""};
    /* From the start: nothing stays. */
    char *path = tiny_training_path(&tiny, "full");
    struct training training = begin(&tiny, path);
    assert_false(run_limited(&training, 20000, &error));
    assert_message(&error, "File too large");
    training_close(&training);
    assert_false(attn_path_exists(path));
    free(path);
    /* Later: the checkpoint is that of before, with every byte. */
    tiny_training_run(&tiny, "whole", 5, NULL);
    tiny_training_run(&tiny, "full later", 5, NULL);
    path = tiny_training_path(&tiny, "full later");
    assert_true(training_resume(&training, path, tiny.corpus, 0, 1, tiny.processes, &error));
    assert_false(run_limited(&training, 20000, &error));
    assert_message(&error, "full later/model.safetensors");
    training_close(&training);
    assert_same_file(&tiny, "whole", "full later", "model.safetensors");
    assert_same_file(&tiny, "whole", "full later", "training.safetensors");
    assert_int_equal(scratch_count(path), 5);
    tiny_training_resume(&tiny, "full later", 0);
    free(path);
    tiny_training_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_steps_or_five_and_five),
        cmocka_unit_test(test_losses_of_a_resume),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_it_learns),
        cmocka_unit_test(test_each_step_has_its_own_dropout),
        cmocka_unit_test(test_an_interruption_saves),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_the_watch),
        cmocka_unit_test(test_a_loss_that_is_not_finite),
        cmocka_unit_test(test_the_step_is_named),
        cmocka_unit_test(test_a_model_that_is_broken_is_not_saved),
        cmocka_unit_test(test_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
