/* What a change must not change, and what it refuses. */
#include "probe/what_if.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "what_if_scene.h"

static const char *const names[] = {"causal/gpt2_f32", "causal/llama_f32", "masked_words"};

/* Twelve tokens, two of which stand for the places of masks. */
static void make_question(struct what_if_question *question)
{
    static const int32_t ids[] = {2, 8, 4, 9, 11, 8, 12, 4, 13, 6, 5, 3};
    *question = (struct what_if_question){.places = {2, 7}};
    question->masks = (struct what_if_masks){NULL, question->places, 2};
    question->encoding = (struct encoding){.tokens = question->tokens, .token_count = 12};
    for (size_t t = 0; t < 12; t++)
        question->tokens[t].id = ids[t];
    for (size_t n = 0; n < MOST_CUTS; n++)
        question->cuts[n] = (struct what_if_cut){question->members[n][0], question->members[n][1]};
    question->what_if = (struct what_if){
        .ablated = question->ablated, .cuts = question->cuts, .where = question->where};
}

static void assert_nothing_changed(const struct what_if_effects *effects, size_t tokens)
{
    for (size_t n = 0; n < effects->place_count; n++) {
        assert_true(effects->places[n].divergence == 0);
        for (size_t w = 0; w < effects->places[n].word_count; w++)
            assert_true(effects->places[n].words[w].before == effects->places[n].words[w].after);
    }
    if (!effects->has_embedding)
        return;
    assert_true(effects->embedding_distance == 0);
    for (size_t t = 0; t < tokens; t++)
        assert_true(effects->token_distances[t] == 0);
}

/* Neither an empty change, nor a cut without members, nor one in which every tile is looked at and
 * no pair is there. */
static void test_no_change_is_none(void **state)
{
    (void)state;
    struct compute compute = make_compute(2);
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        struct what_if_scene scene = what_if_scene_open(names[n]);
        struct what_if_question question;
        make_question(&question);
        for (size_t cuts = 0; cuts < 3; cuts++) {
            question.what_if.cut_count = cuts;
            question.members[1][0][3] = true; /* a query without keys */
            struct what_if_effects effects = what_if_scene_run(&scene, &compute, &question, 4);
            assert_int_equal(effects.place_count, scene.masked ? 2 : 1);
            assert_int_equal(effects.places[0].word_count, 4);
            assert_nothing_changed(&effects, 12);
            what_if_effects_release(&effects);
        }
        what_if_scene_close(&scene);
    }
    compute_destroy(&compute);
}

/* Without masks, or without what fills them, a BERT still has its embedding. */
static void test_without_masks(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct what_if_scene scene = what_if_scene_open("masked_words");
    struct what_if_question question;
    make_question(&question);
    question.what_if.ablated_count = 1;
    struct what_if_effects effects;
    struct attn_error error;
    assert_true(what_if_run(scene.model, NULL, &compute, &question.encoding, &question.what_if, 4,
                            &effects, &error));
    assert_int_equal(effects.place_count, 0);
    assert_true(effects.has_embedding && effects.embedding_distance > 1e-4);
    what_if_effects_release(&effects);
    what_if_scene_close(&scene);
    compute_destroy(&compute);
}

static void refuses(const struct what_if_scene *scene, struct what_if_question *question,
                    const char *part)
{
    struct compute compute = make_compute(1);
    struct what_if_effects effects;
    struct attn_error error = {""};
    assert_false(what_if_run(scene->model, NULL, &compute, &question->encoding, &question->what_if,
                             4, &effects, &error));
    assert_message(&error, part);
    assert_null(effects.places);
    compute_destroy(&compute);
}

static void test_refused(void **state)
{
    (void)state;
    struct what_if_scene scene = what_if_scene_open("causal/gpt2_f32");
    struct what_if_question question;
    make_question(&question);
    question.what_if.ablated_count = 2;
    question.ablated[1] = (struct look_head){1, 3};
    refuses(&scene, &question, "2 layers of 3 heads, counted from 0: there is no L1H3");
    question.ablated[1] = (struct look_head){2, LOOK_MEAN};
    refuses(&scene, &question, "there is no layer 2");
    question.ablated[1] = (struct look_head){-2, 0};
    refuses(&scene, &question, "there is no L-2H0");
    question.ablated[1] = (struct look_head){LOOK_MEAN, 0};
    refuses(&scene, &question, "head 0 of no layer");
    question.what_if.ablated_count = 0;
    question.what_if.where_count = 1;
    question.where[0] = (struct look_head){7, 0};
    refuses(&scene, &question, "there is no L7H0");

    question.what_if.where_count = 0;
    question.what_if.cut_count = 1;
    question.members[0][0][3] = question.members[0][1][4] = true;
    refuses(&scene, &question, "nothing to cut: in a GPT-2 a word sees itself and those before it");
    question.members[0][0][4] = true; /* itself */
    struct compute compute = make_compute(1);
    struct what_if_effects effects = what_if_scene_run(&scene, &compute, &question, 1);
    what_if_effects_release(&effects);
    question.encoding.token_count = 0;
    refuses(&scene, &question, "");
    compute_destroy(&compute);
    what_if_scene_close(&scene);
}

/* Tiles of any place and stride: the cut's pairs become −inf, and no other number is touched; heads
 * and layers that are not named have no callback, or are left alone. */
static void test_tiles(void **state)
{
    (void)state;
    enum { ROWS = 5, COLUMNS = 20 };
    const struct text_model_settings model = {MODEL_BERT, 2, 3, 6, 32, 9};
    struct what_if_question question;
    make_question(&question);
    question.members[0][0][1] = question.members[0][0][11] = true;
    question.members[0][1][0] = question.members[0][1][11] = true;
    question.members[1][0][2] = question.members[1][1][3] = true;
    question.what_if.cut_count = 2;
    question.what_if.where_count = 1;
    question.where[0] = (struct look_head){1, 2};
    struct what_if_change *change;
    struct attn_error error;
    assert_true(
        what_if_change_create(&change, &question.what_if, &model, &question.encoding, &error));
    assert_null(what_if_change_of(change, 0));
    const struct attention_change *layer = what_if_change_of(change, 1);
    assert_non_null(layer);
    assert_null(layer->heads_off);
    for (int64_t head = 0; head < 3; head++)
        for (int64_t query = 0; query < 14; query++)
            for (int64_t key = 0; key < 14; key++) {
                float scores[COLUMNS * ROWS] = {0};
                attn_score_tile tile = {0, head, query, key, ROWS, COLUMNS, scores, 1, ROWS};
                layer->change_scores(layer->user, &tile);
                for (int64_t i = 0; i < ROWS; i++)
                    for (int64_t j = 0; j < COLUMNS; j++) {
                        const int64_t q = query + i, k = key + j;
                        const bool is_cut =
                            head == 2 &&
                            (((q == 1 || q == 11) && (k == 0 || k == 11)) || (q == 2 && k == 3));
                        assert_true(scores[i + j * ROWS] == (is_cut ? -INFINITY : 0.0f));
                    }
            }
    what_if_change_destroy(change);
}

/* What an observer sees of a changed model: the ablated head's weights as they were, the cut pair's
 * weight 0, and rows that sum to 1. */
struct watch {
    struct what_if_change *change;
    float weights[2][3][144]; /* [layers][heads][tokens][tokens] */
};

static const struct attention_change *change_of(void *user, int64_t layer)
{
    struct watch *watch = user;
    return watch->change ? what_if_change_of(watch->change, layer) : NULL;
}

static bool look_on(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    (void)error;
    struct watch *watch = user;
    attn_tensor all = attn_tensor_packed(watch->weights[layer], ATTN_F32, 1, 3, 12, 12);
    assert_int_equal(attn_weights(compute->attention, record->params, &record->q, &record->k,
                                  &record->stats, NULL, &all),
                     ATTN_SUCCESS);
    return true;
}

static void watch_text(const struct what_if_scene *scene, const struct compute *compute,
                       const struct what_if_question *question, struct watch *watch)
{
    const struct model_observer observer = {look_on, watch, change_of};
    struct attn_error error;
    if (!text_model_read(scene->model, compute, &question->encoding, &observer, NULL, &error))
        fail_msg("%s", error.message);
}

static void weights(const struct compute *compute)
{
    struct what_if_scene scene = what_if_scene_open("causal/gpt2_f32");
    struct what_if_question question;
    make_question(&question);
    question.what_if.ablated_count = question.what_if.cut_count = question.what_if.where_count = 1;
    question.ablated[0] = (struct look_head){0, 1};
    question.where[0] = (struct look_head){0, 2};
    question.members[0][0][7] = question.members[0][1][5] = true;
    static struct watch plain, changed;
    plain.change = NULL;
    struct attn_error error;
    assert_true(what_if_change_create(&changed.change, &question.what_if,
                                      text_model_get_settings(scene.model), &question.encoding,
                                      &error));
    watch_text(&scene, compute, &question, &plain);
    watch_text(&scene, compute, &question, &changed);
    assert_memory_equal(changed.weights[0][0], plain.weights[0][0], sizeof plain.weights[0][0]);
    assert_memory_equal(changed.weights[0][1], plain.weights[0][1], sizeof plain.weights[0][1]);
    assert_memory_not_equal(changed.weights[1], plain.weights[1], sizeof plain.weights[1]);
    const double left = 1.0 - (double)plain.weights[0][2][7 * 12 + 5];
    for (int n = 0; n < 144; n++) {
        const double before = (double)plain.weights[0][2][n];
        const double expected = n == 7 * 12 + 5 ? 0 : n / 12 == 7 ? before / left : before;
        assert_true(fabs((double)changed.weights[0][2][n] - expected) <= 1e-6);
    }
    assert_true(changed.weights[0][2][7 * 12 + 5] == 0.0f);
    what_if_change_destroy(changed.change);
    what_if_scene_close(&scene);
}

static void test_weights(void **state)
{
    (void)state;
    each_isa(1, weights);
}

struct attempt {
    struct what_if_scene scene;
    struct compute compute;
    struct what_if_question question;
};

static bool run_once(void *user, struct attn_error *error)
{
    struct attempt *attempt = user;
    struct what_if_effects effects;
    const bool done =
        what_if_run(attempt->scene.model, &attempt->question.masks, &attempt->compute,
                    &attempt->question.encoding, &attempt->question.what_if, 3, &effects, error);
    what_if_effects_release(&effects);
    return done;
}

static void test_allocations(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        static struct attempt attempt;
        attempt.scene = what_if_scene_open(names[n]);
        attempt.compute = make_compute(1);
        make_question(&attempt.question);
        attempt.question.masks.model = attempt.scene.masked;
        attempt.question.what_if.ablated_count = attempt.question.what_if.cut_count = 1;
        attempt.question.members[0][0][5] = attempt.question.members[0][1][1] = true;
        assert_true(allocation_sweep(run_once, &attempt) >= 14);
        compute_destroy(&attempt.compute);
        what_if_scene_close(&attempt.scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_change_is_none), cmocka_unit_test(test_without_masks),
        cmocka_unit_test(test_refused),           cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_weights),           cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
