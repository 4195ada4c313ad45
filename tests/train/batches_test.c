#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "train/batches.h"
#include "word_tokenizer.h"

enum { TRAINING = 200, HELD_OUT = 31, CONTEXT = 10, BATCH = 6 };

struct fixture {
    char *folder;
    struct tokenizer *tokenizer;
    struct corpus corpus;
    struct train_settings settings;
    struct batches batches;
};

/* Every id tells its place: the text is w0 w1 … w59 w0 … */
static void make_corpus(struct corpus *corpus)
{
    corpus->ids = malloc((TRAINING + HELD_OUT) * sizeof *corpus->ids);
    for (int i = 0; i < TRAINING + HELD_OUT; i++)
        corpus->ids[i] = WORD_FIRST + i % WORD_COUNT;
    corpus->training_count = TRAINING;
    corpus->held_out_count = HELD_OUT;
}

static int begin(void **user, enum train_objective objective)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct attn_error error;
    fixture->folder = scratch_folder_create();
    fixture->tokenizer = word_tokenizer_open(fixture->folder);
    make_corpus(&fixture->corpus);
    train_settings_init(&fixture->settings);
    fixture->settings.objective = objective;
    fixture->settings.context = CONTEXT;
    fixture->settings.batch = BATCH;
    if (!batches_create(&fixture->batches, &fixture->settings, &fixture->corpus, fixture->tokenizer,
                        &error))
        fail_msg("%s", error.message);
    *user = fixture;
    return 0;
}

static int begin_gpt(void **user)
{
    return begin(user, TRAIN_GPT);
}

static int begin_mlm(void **user)
{
    return begin(user, TRAIN_MLM);
}

static int end(void **user)
{
    struct fixture *fixture = *user;
    batches_destroy(&fixture->batches);
    corpus_release(&fixture->corpus);
    tokenizer_close(fixture->tokenizer);
    scratch_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static int32_t behind(int32_t id)
{
    return WORD_FIRST + (id - WORD_FIRST + 1) % WORD_COUNT;
}

static void check_gpt_sequence(const struct language_batch *batch, int64_t sequence)
{
    int64_t begin = batch->batch.starts[sequence], end = batch->batch.starts[sequence + 1];
    for (int64_t i = begin; i < end; i++) {
        assert_int_equal(batch->labels[i], behind(batch->ids[i]));
        if (i > begin)
            assert_int_equal(batch->ids[i], batch->labels[i - 1]);
    }
}

static void test_gpt(void **user)
{
    struct fixture *fixture = *user;
    struct batches *batches = &fixture->batches;
    int64_t windows = (TRAINING - 1) / CONTEXT - 1;
    assert_int_equal(batches->windows.count, windows);
    for (int64_t step = 0; step < 2 * windows; step++) {
        batches_fill(batches, step);
        assert_int_equal(batches->labels_counted, BATCH * CONTEXT);
        struct language_batch all = batches_part(batches, 0, BATCH);
        assert_int_equal(packed_batch_tokens(&all.batch), BATCH * CONTEXT);
        for (int64_t sequence = 0; sequence < BATCH; sequence++)
            check_gpt_sequence(&all, sequence);
        struct language_batch part = batches_part(batches, 2, 3);
        assert_int_equal(packed_batch_tokens(&part.batch), 3 * CONTEXT);
        assert_ptr_equal(part.ids, all.ids + 2 * CONTEXT);
        assert_ptr_equal(part.labels, all.labels + 2 * CONTEXT);
    }
}

/* A step can be filled again after any other: that is what a resume needs. */
static void check_refilling(struct batches *batches)
{
    int32_t ids[BATCH * CONTEXT], labels[BATCH * CONTEXT];
    batches_fill(batches, 12);
    memcpy(ids, batches->ids, sizeof ids);
    memcpy(labels, batches->labels, sizeof labels);
    batches_fill(batches, 13);
    assert_memory_not_equal(ids, batches->ids, sizeof ids);
    batches_fill_held_out(batches, 0, 1);
    batches_fill(batches, 12);
    assert_memory_equal(ids, batches->ids, sizeof ids);
    assert_memory_equal(labels, batches->labels, sizeof labels);
}

static void test_refilling(void **user)
{
    struct fixture *fixture = *user;
    check_refilling(&fixture->batches);
}

/* All of the held-out text but its first token is told, once; the last sequence is shorter. */
static void test_gpt_held_out(void **user)
{
    struct fixture *fixture = *user;
    struct batches *batches = &fixture->batches;
    int64_t sequences = batches_held_out_sequences(batches), told = 0;
    assert_int_equal(sequences, (HELD_OUT - 1 + CONTEXT - 1) / CONTEXT);
    for (int64_t first = 0; first < sequences; first += 2) {
        int64_t count = sequences - first < 2 ? sequences - first : 2;
        batches_fill_held_out(batches, first, count);
        struct language_batch part = batches_part(batches, 0, count);
        assert_int_equal(part.ids[0], fixture->corpus.ids[TRAINING + first * CONTEXT]);
        for (int64_t sequence = 0; sequence < count; sequence++)
            check_gpt_sequence(&part, sequence);
        assert_int_equal(packed_batch_tokens(&part.batch), batches->labels_counted);
        told += batches->labels_counted;
    }
    assert_int_equal(told, HELD_OUT - 1);
}

static void check_mlm_sequence(const struct language_batch *batch, int64_t sequence)
{
    int64_t begin = batch->batch.starts[sequence], end = batch->batch.starts[sequence + 1];
    assert_int_equal(batch->ids[begin], 2);
    assert_int_equal(batch->ids[end - 1], 3);
    assert_int_equal(batch->labels[begin], CROSS_ENTROPY_IGNORE);
    assert_int_equal(batch->labels[end - 1], CROSS_ENTROPY_IGNORE);
    int64_t chosen = 0;
    for (int64_t i = begin + 1; i < end - 1; i++)
        chosen += batch->labels[i] != CROSS_ENTROPY_IGNORE;
    assert_true(chosen >= 1);
}

static void test_mlm(void **user)
{
    struct fixture *fixture = *user;
    struct batches *batches = &fixture->batches;
    for (int64_t step = 0; step < 40; step++) {
        batches_fill(batches, step);
        struct language_batch all = batches_part(batches, 0, BATCH);
        assert_int_equal(packed_batch_tokens(&all.batch), BATCH * CONTEXT);
        int64_t labels = 0;
        for (int64_t sequence = 0; sequence < BATCH; sequence++)
            check_mlm_sequence(&all, sequence);
        for (int64_t i = 0; i < BATCH * CONTEXT; i++)
            labels += all.labels[i] != CROSS_ENTROPY_IGNORE;
        assert_int_equal(labels, batches->labels_counted);
    }
    int64_t sequences = batches_held_out_sequences(batches);
    assert_int_equal(sequences, (HELD_OUT + CONTEXT - 3) / (CONTEXT - 2));
    batches_fill_held_out(batches, sequences - 1, 1);
    struct language_batch last = batches_part(batches, 0, 1);
    assert_int_equal(packed_batch_tokens(&last.batch), HELD_OUT % (CONTEXT - 2) + 2);
    check_mlm_sequence(&last, 0);
}

static void test_refusals(void **user)
{
    struct fixture *fixture = *user;
    struct batches batches;
    struct attn_error error = {""};
    fixture->corpus.training_count = CONTEXT;
    assert_false(
        batches_create(&batches, &fixture->settings, &fixture->corpus, fixture->tokenizer, &error));
    assert_message(&error, "the text has 10 tokens to learn from");
    assert_message(&error, "needs 11");
    fixture->corpus.training_count = CONTEXT + 1;
    fixture->corpus.held_out_count = 1; /* nothing to tell: as if there were none */
    assert_true(
        batches_create(&batches, &fixture->settings, &fixture->corpus, fixture->tokenizer, &error));
    assert_int_equal(batches_held_out_sequences(&batches), 0);
    batches_destroy(&batches);

    fixture->settings.objective = TRAIN_MLM;
    for (int i = 0; i < TRAINING; i++)
        fixture->corpus.ids[i] = 1;
    assert_false(
        batches_create(&batches, &fixture->settings, &fixture->corpus, fixture->tokenizer, &error));
    assert_message(&error, "knows no word");
}

static bool create_and_destroy(void *user, struct attn_error *error)
{
    const struct fixture *fixture = user;
    struct batches batches;
    if (!batches_create(&batches, &fixture->settings, &fixture->corpus, fixture->tokenizer, error))
        return false;
    batches_destroy(&batches);
    return true;
}

static void test_failing_allocations(void **user)
{
    assert_true(allocation_sweep(create_and_destroy, *user) >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gpt, begin_gpt, end),
        cmocka_unit_test_setup_teardown(test_refilling, begin_gpt, end),
        cmocka_unit_test_setup_teardown(test_gpt_held_out, begin_gpt, end),
        cmocka_unit_test_setup_teardown(test_mlm, begin_mlm, end),
        cmocka_unit_test_setup_teardown(test_refilling, begin_mlm, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin_gpt, end),
        cmocka_unit_test_setup_teardown(test_failing_allocations, begin_mlm, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
