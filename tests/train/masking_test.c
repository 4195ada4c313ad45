#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "nn/cross_entropy.h"
#include "scratch_folder.h"
#include "train/masking.h"
#include "word_tokenizer.h"

struct fixture {
    char *folder;
    struct tokenizer *tokenizer;
    struct mask_words words;
};

static int begin(void **user)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct attn_error error;
    fixture->folder = scratch_folder_create();
    fixture->tokenizer = word_tokenizer_open(fixture->folder);
    if (!mask_words_create(&fixture->words, fixture->tokenizer, &error))
        fail_msg("%s", error.message);
    *user = fixture;
    return 0;
}

static int end(void **user)
{
    struct fixture *fixture = *user;
    mask_words_destroy(&fixture->words);
    tokenizer_close(fixture->tokenizer);
    scratch_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static void test_words(void **user)
{
    const struct fixture *fixture = *user;
    const struct mask_words *words = &fixture->words;
    assert_int_equal(words->begin, 2);
    assert_int_equal(words->end, 3);
    assert_int_equal(words->mask, 4);
    assert_int_equal(words->ordinary_count, WORD_COUNT);
    for (int32_t id = 0; id < words->size; id++)
        assert_true(words->special[id] == (id < WORD_FIRST));
    for (int64_t i = 0; i < words->ordinary_count; i++)
        assert_int_equal(words->ordinary[i], WORD_FIRST + i);
}

/* 15 % of the words; of these 80 % masked, 10 % another word, 10 % the same. */
static void test_shares(void **user)
{
    const struct fixture *fixture = *user;
    enum { COUNT = 200000 };
    int32_t *ids = malloc(COUNT * sizeof *ids), *labels = malloc(COUNT * sizeof *labels);
    for (int i = 0; i < COUNT; i++)
        ids[i] = WORD_FIRST + i % WORD_COUNT;
    struct mask_place place = {.seed = 1, .step = 3};
    int64_t chosen = mask_window(&fixture->words, &place, COUNT, ids, labels);
    double masked = 0.0, same = 0.0, other = 0.0;
    int64_t labelled = 0;
    for (int i = 0; i < COUNT; i++) {
        int32_t before = WORD_FIRST + i % WORD_COUNT;
        if (labels[i] == CROSS_ENTROPY_IGNORE) {
            assert_int_equal(ids[i], before);
            continue;
        }
        labelled++;
        assert_int_equal(labels[i], before);
        masked += ids[i] == 4;
        same += ids[i] == before;
        other += ids[i] != 4 && ids[i] != before;
        assert_true(ids[i] == 4 || ids[i] >= WORD_FIRST);
    }
    assert_int_equal(labelled, chosen);
    /* Five standard deviations. A random word is the same one time in WORD_COUNT. */
    double share = 0.1 * (double)chosen / WORD_COUNT, spread = 5.0 * sqrt(0.16 * (double)chosen);
    assert_true(fabs((double)chosen - 0.15 * COUNT) <= 5.0 * sqrt(0.15 * 0.85 * COUNT));
    assert_true(fabs(masked - 0.8 * (double)chosen) <= spread);
    assert_true(fabs(same - 0.1 * (double)chosen - share) <= spread);
    assert_true(fabs(other - 0.1 * (double)chosen + share) <= spread);
    free(ids);
    free(labels);
}

static void test_special_tokens_are_never_chosen(void **user)
{
    const struct fixture *fixture = *user;
    enum { COUNT = 5000 };
    int32_t ids[COUNT], labels[COUNT];
    for (int i = 0; i < COUNT; i++)
        ids[i] = i % 2 ? i % WORD_FIRST : WORD_FIRST;
    struct mask_place place = {.seed = 1};
    assert_true(mask_window(&fixture->words, &place, COUNT, ids, labels) > 0);
    for (int i = 1; i < COUNT; i += 2)
        assert_true(labels[i] == CROSS_ENTROPY_IGNORE && ids[i] == i % WORD_FIRST);
}

/* A short window nearly always draws none, and has one nevertheless. */
static void test_every_window_has_one(void **user)
{
    const struct fixture *fixture = *user;
    int places[3] = {0};
    for (int64_t step = 0; step < 600; step++) {
        int32_t ids[3] = {WORD_FIRST, WORD_FIRST + 1, WORD_FIRST + 2}, labels[3];
        struct mask_place place = {.seed = 9, .step = step};
        int64_t chosen = mask_window(&fixture->words, &place, 3, ids, labels);
        int64_t labelled = 0;
        for (int i = 0; i < 3; i++) {
            labelled += labels[i] != CROSS_ENTROPY_IGNORE;
            places[i] += labels[i] != CROSS_ENTROPY_IGNORE;
        }
        assert_true(chosen >= 1 && labelled == chosen);
    }
    for (int i = 0; i < 3; i++)
        assert_true(places[i] > 150);
    /* One that has no word cannot. */
    int32_t unknown[2] = {1, 1}, labels[2];
    struct mask_place place = {.seed = 9};
    assert_int_equal(mask_window(&fixture->words, &place, 2, unknown, labels), 0);
    assert_true(unknown[0] == 1 && labels[0] == CROSS_ENTROPY_IGNORE);
}

/* The same place draws the same, however the batch is cut; held-out text at every evaluation. */
static void test_places(void **user)
{
    const struct fixture *fixture = *user;
    enum { COUNT = 400 };
    int32_t whole[COUNT], half[COUNT], other[COUNT], labels[COUNT], more[COUNT];
    for (int i = 0; i < COUNT; i++)
        whole[i] = half[i] = other[i] = WORD_FIRST + i % WORD_COUNT;
    struct mask_place place = {.seed = 5, .step = 7};
    mask_window(&fixture->words, &place, COUNT, whole, labels);
    place.first_token = COUNT / 2;
    mask_window(&fixture->words, &place, COUNT / 2, half + COUNT / 2, more);
    assert_memory_equal(whole + COUNT / 2, half + COUNT / 2, COUNT / 2 * sizeof *whole);
    assert_memory_equal(labels + COUNT / 2, more, COUNT / 2 * sizeof *more);

    place = (struct mask_place){.seed = 5, .step = 8};
    mask_window(&fixture->words, &place, COUNT, other, more);
    assert_memory_not_equal(labels, more, sizeof labels);
    int32_t first[COUNT], second[COUNT];
    for (int i = 0; i < COUNT; i++)
        first[i] = second[i] = WORD_FIRST + i % WORD_COUNT;
    struct mask_place held_out = {.seed = 5, .held_out = true, .step = 1};
    mask_window(&fixture->words, &held_out, COUNT, first, labels);
    held_out.step = 2;
    mask_window(&fixture->words, &held_out, COUNT, second, more);
    assert_memory_equal(first, second, sizeof first);
    assert_memory_equal(labels, more, sizeof labels);
}

static void test_a_tokenizer_without_the_tokens(void **user)
{
    (void)user;
    char *folder = scratch_folder_create();
    scratch_write_text(folder, "vocab.txt", "[UNK]\n[CLS]\n[SEP]\nw\n");
    struct tokenizer *tokenizer;
    struct attn_error error = {""};
    struct mask_words words;
    if (!tokenizer_open(&tokenizer, folder, &error))
        fail_msg("%s", error.message);
    assert_false(mask_words_create(&words, tokenizer, &error));
    assert_message(&error, "[MASK]");
    tokenizer_close(tokenizer);
    scratch_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, begin, end),
        cmocka_unit_test_setup_teardown(test_shares, begin, end),
        cmocka_unit_test_setup_teardown(test_special_tokens_are_never_chosen, begin, end),
        cmocka_unit_test_setup_teardown(test_every_window_has_one, begin, end),
        cmocka_unit_test_setup_teardown(test_places, begin, end),
        cmocka_unit_test(test_a_tokenizer_without_the_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
