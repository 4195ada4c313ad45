/* The table of dependencies on a treebank whose counts were made by hand: its attention, the words
 * that each head finds, and the best offsets. */
#include "probe/dependency_scores.h"

#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "probe/dependency_sentence.h"
#include "scratch_folder.h"
#include "test_data.h"
#include "tiny_model.h"

enum { SENTENCES = 5, LONGEST = 5 };

/* Attention of head 0 among the words of each sentence. */
static const float hand_made[SENTENCES][LONGEST * LONGEST] = {
    /* The dog barks . */
    {0.7f, 0.2f, 0.1f, 0.0f,  /* The → dog: right */
     0.3f, 0.1f, 0.3f, 0.3f,  /* dog → The, the first of three equal: wrong */
     0.1f, 0.4f, 0.1f, 0.4f,  /* the root */
     0.0f, 0.0f, 0.5f, 0.5f}, /* . → barks: right */
    /* Do n't run */
    {0.2f, 0.5f, 0.3f,  /* Do → n't: wrong */
     0.1f, 0.1f, 0.8f,  /* n't → run: right */
     0.3f, 0.3f, 0.4f}, /* the root */
    /* She saw the old dog */
    {0.0f, 0.6f, 0.4f, 0.0f,  0.0f,  /* She → saw: right */
     0.2f, 0.2f, 0.2f, 0.2f,  0.2f,  /* the root */
     0.0f, 0.0f, 0.9f, 0.06f, 0.04f, /* the → old: wrong */
     0.0f, 0.0f, 0.0f, 0.0f,  1.0f,  /* old → dog: right */
     0.1f, 0.5f, 0.2f, 0.1f,  0.1f}, /* dog → saw: right */
    /* It was seen */
    {1.0f, 0.0f, 0.0f,    /* It → nothing: wrong */
     0.5f, 0.25f, 0.25f,  /* was → It: wrong */
     0.25f, 0.25f, 0.5f}, /* the root */
    /* Yes */
    {1.0f},
};

/* Each count stands beside the words that it is of. */
static const struct {
    const char *name;
    size_t words;
    int offset;
    size_t offset_correct;
    /* Head 0 is the above. Head 1 gives all to the word before, so that a word looks at it, and is
     * looked at by the one behind. */
    size_t correct[2][DEPENDENCY_DIRECTIONS];
} hand_counted[] = {
    {NULL, 11, 1, 6, {{6, 6}, {1, 6}}},
    /* dog, She, It: looked at by barks and saw (It by was); dog and She have their head behind */
    {"nsubj", 3, 1, 2, {{1, 2}, {0, 2}}},
    /* Do, was: looked at by run and seen; their heads are last, and two behind reaches both */
    {"aux", 2, 2, 2, {{0, 2}, {0, 1}}},
    /* The, the: The looks at dog, dog at The; the is looked at by She */
    {"det", 2, 1, 1, {{1, 1}, {0, 1}}},
    {"advmod", 1, 1, 1, {{1, 0}, {0, 1}}}, /* n't is looked at by Do */
    {"amod", 1, 1, 1, {{1, 0}, {0, 1}}},   /* old is looked at by saw */
    {"obj", 1, -3, 1, {{1, 0}, {0, 0}}},   /* dog is looked at by old */
    {"punct", 1, -1, 1, {{1, 1}, {1, 0}}},
};
enum { RELATIONS = sizeof hand_counted / sizeof hand_counted[0] };

static struct treebank read_small(void)
{
    char *path = test_data_path("treebank/small.conllu");
    struct treebank treebank;
    struct attn_error error;
    if (!treebank_read(&treebank, path, &error))
        fail_msg("%s", error.message);
    free(path);
    return treebank;
}

static void add_head(struct dependency_scores *scores, const struct treebank *treebank, size_t n,
                     int64_t layer, int64_t head, const float *weights, bool backwards)
{
    const struct treebank_sentence *sentence = &treebank->sentences[n];
    struct dependency_links links;
    struct attn_error error;
    assert_true(dependency_links_create(&links, LONGEST, &error));
    dependency_links_begin(&links, sentence->count);
    for (size_t row = 0; row < sentence->count; row++) {
        const size_t i = backwards ? sentence->count - 1 - row : row;
        dependency_links_add(&links, i, weights + i * sentence->count);
    }
    dependency_scores_add(scores, treebank, sentence, layer, head, &links);
    dependency_links_release(&links);
}

static void add_by_hand(struct dependency_scores *scores, const struct treebank *treebank,
                        int64_t layer, bool backwards)
{
    for (size_t n = 0; n < SENTENCES; n++) {
        const size_t count = treebank->sentences[n].count;
        float before[LONGEST * LONGEST] = {1.0f};
        for (size_t i = 1; i < count; i++)
            before[i * count + i - 1] = 1.0f;
        add_head(scores, treebank, n, layer, 0, hand_made[n], backwards);
        add_head(scores, treebank, n, layer, 1, before, backwards);
    }
}

/* In the second of two layers of two heads. */
static void test_hand_counted(void **state)
{
    (void)state;
    struct treebank treebank = read_small();
    for (int backwards = 0; backwards < 2; backwards++) {
        struct dependency_scores scores;
        struct attn_error error;
        assert_true(dependency_scores_create(&scores, &treebank, 2, 2, &error));
        add_by_hand(&scores, &treebank, 1, backwards);
        assert_int_equal(scores.relation_count, RELATIONS);
        for (size_t n = 0; n < RELATIONS; n++) {
            const struct dependency_relation *relation = &scores.relations[n];
            if (n > 0)
                assert_string_equal(relation->name, hand_counted[n].name);
            assert_int_equal(relation->words, hand_counted[n].words);
            assert_int_equal(relation->offset, hand_counted[n].offset);
            assert_int_equal(relation->offset_correct, hand_counted[n].offset_correct);
            for (size_t place = 0; place < 4; place++) {
                assert_int_equal(relation->correct[place], 0);
                assert_int_equal(relation->correct[4 + place],
                                 hand_counted[n].correct[place / 2][place % 2]);
            }
        }
        assert_null(scores.relations[0].name);
        assert_int_equal(dependency_best(&scores, &scores.relations[0], 0, 1), 4);
        assert_int_equal(dependency_best(&scores, &scores.relations[1], 0, 1), 5);
        assert_int_equal(dependency_best(&scores, &scores.relations[4], 1, 1), 4);
        assert_int_equal(dependency_best(&scores, &scores.relations[4], 0, 0), 0);
        dependency_scores_release(&scores);
    }
    treebank_release(&treebank);
}

/* A token of the text from begin to end, or one that was added. */
static struct token piece(size_t begin, size_t end)
{
    return (struct token){.id = 1, .begin = begin, .end = end};
}

static const struct token added = {.id = 2, .text = -1, .word = TOKEN_NO_WORD};

/* "She saw the old dog": pieces with the space before them, within a word, and over two. */
static void test_pieces_of_words(void **state)
{
    (void)state;
    struct treebank treebank = read_small();
    struct token tokens[] = {added,        piece(0, 2),   piece(2, 3),   piece(3, 7),   piece(7, 8),
                             piece(8, 11), piece(11, 17), piece(15, 17), piece(17, 19), added};
    const int32_t expected[] = {-1, 0, 0, 1, -1, 2, 3, 4, 4, -1};
    int32_t word_of[10];
    const struct encoding encoding = {.tokens = tokens, .token_count = 10};
    dependency_sentence_match(&treebank, &treebank.sentences[2], &encoding, word_of);
    assert_memory_equal(word_of, expected, sizeof expected);
    treebank_release(&treebank);
}

/* A model that reads "She saw the old dog" as six pieces between two added tokens. */
struct scene {
    struct treebank treebank;
    struct model_source *source;
    struct text_model *model;
    struct compute compute;
    struct token tokens[8];
    struct encoding encoding;
    float attention[2][2][8][8]; /* as the model had it */
};

static void open_scene(struct scene *scene)
{
    const struct token tokens[8] = {added,         piece(0, 3),   piece(4, 7),   piece(8, 11),
                                    piece(12, 13), piece(13, 15), piece(16, 19), added};
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    char *folder = tiny_model_save(&tiny);
    struct attn_error error;
    *scene = (struct scene){.treebank = read_small(), .compute = make_compute(1)};
    if (!model_source_open(&scene->source, folder, &error) ||
        !text_model_open(&scene->model, scene->source, &error))
        fail_msg("%s", error.message);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
    memcpy(scene->tokens, tokens, sizeof tokens);
    scene->encoding = (struct encoding){.tokens = scene->tokens, .token_count = 8};
}

static void close_scene(struct scene *scene)
{
    compute_destroy(&scene->compute);
    text_model_close(scene->model);
    model_source_close(scene->source);
    treebank_release(&scene->treebank);
}

static bool keep_attention(void *user, int64_t layer, const struct compute *compute,
                           const struct attention_record *record, struct attn_error *error)
{
    (void)error;
    struct scene *scene = user;
    attn_tensor all = attn_tensor_packed(scene->attention[layer], ATTN_F32, 1, 2, 8, 8);
    assert_int_equal(attn_weights(compute->attention, record->params, &record->q, &record->k,
                                  &record->stats, NULL, &all),
                     ATTN_SUCCESS);
    return true;
}

/* The model's own attention merged here, and counted as if it were made by hand. */
static void count_merged(struct scene *scene, struct dependency_scores *expected)
{
    const size_t first[] = {1, 2, 3, 4, 6}, behind[] = {2, 3, 4, 6, 7};
    const struct model_observer observer = {.observe = keep_attention, .user = scene};
    struct attn_error error;
    assert_true(
        text_model_read(scene->model, &scene->compute, &scene->encoding, &observer, NULL, &error));
    for (int64_t n = 0; n < 4; n++) {
        float merged[25];
        for (size_t i = 0; i < 5; i++)
            for (size_t j = 0; j < 5; j++) {
                float sum = 0.0f;
                for (size_t query = first[i]; query < behind[i]; query++)
                    for (size_t key = first[j]; key < behind[j]; key++)
                        sum += scene->attention[n / 2][n % 2][query][key];
                merged[i * 5 + j] = sum / (float)(behind[i] - first[i]);
            }
        add_head(expected, &scene->treebank, 2, n / 2, n % 2, merged, false);
    }
}

static bool add_once(void *user, struct attn_error *error)
{
    struct scene *scene = user;
    struct dependency_scores scores;
    if (!dependency_scores_create(&scores, &scene->treebank, 2, 2, error))
        return false;
    bool done = dependency_sentence_add(&scores, &scene->treebank, &scene->treebank.sentences[2],
                                        scene->model, &scene->compute, &scene->encoding, error);
    dependency_scores_release(&scores);
    return done;
}

static void test_of_a_model(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    struct dependency_scores expected, scores;
    struct attn_error error;
    assert_true(dependency_scores_create(&expected, &scene.treebank, 2, 2, &error));
    assert_true(dependency_scores_create(&scores, &scene.treebank, 2, 2, &error));
    size_t found = 0;
    for (int32_t text = 0; text < 10; text++) {
        for (int32_t t = 0; t < 8; t++)
            scene.tokens[t].id = (t * t * 3 + t * text + text) % 10;
        count_merged(&scene, &expected);
        if (!dependency_sentence_add(&scores, &scene.treebank, &scene.treebank.sentences[2],
                                     scene.model, &scene.compute, &scene.encoding, &error))
            fail_msg("%s", error.message);
        for (size_t n = 0; n < RELATIONS * 8; n++) {
            assert_int_equal(scores.correct[n], expected.correct[n]);
            found += scores.correct[n];
        }
    }
    assert_true(found > 0);

    struct encoding none = {.tokens = scene.tokens};
    assert_false(dependency_sentence_add(&scores, &scene.treebank, &scene.treebank.sentences[2],
                                         scene.model, &scene.compute, &none, &error));
    assert_message(&error, "0 tokens, but must have 1 to 8");
    dependency_scores_release(&scores);
    dependency_scores_release(&expected);
    assert_true(allocation_sweep(add_once, &scene) >= 10);
    close_scene(&scene);
}

static struct treebank read_lines(const char *text)
{
    char *folder = scratch_folder_create();
    scratch_write_text(folder, "a.conllu", text);
    char path[4096];
    snprintf(path, sizeof path, "%s/a.conllu", folder);
    struct treebank treebank;
    struct attn_error error;
    if (!treebank_read(&treebank, path, &error))
        fail_msg("%s", error.message);
    scratch_folder_remove(folder);
    return treebank;
}

static void test_refused(void **state)
{
    (void)state;
    struct dependency_scores scores;
    struct attn_error error;
    struct treebank treebank = read_lines("1\tYes\t_\t_\t_\t_\t0\troot\t_\t_\n");
    assert_false(dependency_scores_create(&scores, &treebank, 1, 1, &error));
    assert_message(&error, "no word that depends on another");
    treebank_release(&treebank);

    struct attn_buffer text = {0};
    attn_buffer_add_text(&text, "1\tYes\t_\t_\t_\t_\t0\troot\t_\t_\n");
    for (int word = 2; word <= 1001; word++)
        attn_buffer_format(&text, "%d\ta\t_\t_\t_\t_\t1\tr%d\t_\t_\n", word, word);
    treebank = read_lines(text.data);
    assert_true(dependency_scores_create(&scores, &treebank, 1, 1, &error));
    assert_int_equal(scores.relation_count, 1001);
    dependency_scores_release(&scores);
    treebank_release(&treebank);
    attn_buffer_add_text(&text, "1002\ta\t_\t_\t_\t_\t1\tr1002\t_\t_\n");
    treebank = read_lines(text.data);
    assert_false(dependency_scores_create(&scores, &treebank, 1, 1, &error));
    assert_message(&error, "more than 1000 relations");
    treebank_release(&treebank);
    attn_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand_counted),
        cmocka_unit_test(test_pieces_of_words),
        cmocka_unit_test(test_of_a_model),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
