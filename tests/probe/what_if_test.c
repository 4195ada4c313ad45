/* What a change does, against Transformers' models with hooks, and what must not change. */
#include "probe/what_if.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"

enum { MOST_TOKENS = 16, MOST_HEADS = 8, MOST_CUTS = 4 };

/* A model of tests/data/models. */
struct scene {
    struct model_source *source;
    struct text_model *model;
    struct masked_words *masked; /* NULL where it is no BERT */
};

static struct scene open_scene(const char *name)
{
    char file[128];
    snprintf(file, sizeof file, "models/%s", name);
    char *path = test_data_path(file);
    struct scene scene = {0};
    struct attn_error error;
    if (!model_source_open(&scene.source, path, &error) ||
        !text_model_open(&scene.model, scene.source, &error))
        fail_msg("%s", error.message);
    if (text_model_get_settings(scene.model)->kind == MODEL_BERT &&
        !masked_words_open(&scene.masked, path, &error))
        fail_msg("%s", error.message);
    free(path);
    return scene;
}

static void close_scene(struct scene *scene)
{
    masked_words_close(scene->masked);
    text_model_close(scene->model);
    model_source_close(scene->source);
}

/* A text and a change, with room for what they point to; not to be moved. */
struct question {
    struct token tokens[MOST_TOKENS];
    struct encoding encoding;
    int64_t places[MOST_TOKENS];
    struct what_if_masks masks;
    struct look_head ablated[MOST_HEADS], where[MOST_HEADS];
    bool members[MOST_CUTS][2][MOST_TOKENS];
    struct what_if_cut cuts[MOST_CUTS];
    struct what_if what_if;
};

static size_t read_heads(const json_t *list, struct look_head *heads)
{
    const size_t count = json_array_size(list);
    assert_true(count <= MOST_HEADS);
    for (size_t n = 0; n < count; n++) {
        const json_t *pair = json_array_get(list, n);
        heads[n] = (struct look_head){json_integer_value(json_array_get(pair, 0)),
                                      json_integer_value(json_array_get(pair, 1))};
    }
    return count;
}

static void read_members(const json_t *list, bool *members)
{
    for (size_t n = 0; n < json_array_size(list); n++) {
        const json_int_t token = json_integer_value(json_array_get(list, n));
        assert_true(token >= 0 && token < MOST_TOKENS);
        members[token] = true;
    }
}

/* An entry of golden/what_if.json. */
static void read_question(const json_t *entry, struct question *question)
{
    *question = (struct question){0};
    const json_t *ids = case_field(entry, "ids", NULL), *types = case_field(entry, "types", NULL);
    assert_true(json_array_size(ids) <= MOST_TOKENS);
    question->encoding =
        (struct encoding){.tokens = question->tokens, .token_count = json_array_size(ids)};
    for (size_t t = 0; t < json_array_size(ids); t++)
        question->tokens[t] =
            (struct token){.id = (int32_t)json_integer_value(json_array_get(ids, t)),
                           .type = (int32_t)json_integer_value(json_array_get(types, t))};
    const json_t *places = case_field(entry, "places", NULL);
    question->masks = (struct what_if_masks){NULL, question->places, json_array_size(places)};
    for (size_t n = 0; n < question->masks.count; n++)
        question->places[n] =
            json_integer_value(json_object_get(json_array_get(places, n), "token"));

    const json_t *cuts = case_field(entry, "cuts", NULL);
    assert_true(json_array_size(cuts) <= MOST_CUTS);
    for (size_t n = 0; n < json_array_size(cuts); n++) {
        read_members(json_object_get(json_array_get(cuts, n), "queries"), question->members[n][0]);
        read_members(json_object_get(json_array_get(cuts, n), "keys"), question->members[n][1]);
        question->cuts[n] = (struct what_if_cut){question->members[n][0], question->members[n][1]};
    }
    question->what_if = (struct what_if){
        .ablated = question->ablated,
        .ablated_count = read_heads(case_field(entry, "ablated", NULL), question->ablated),
        .cuts = question->cuts,
        .cut_count = json_array_size(cuts),
        .where = question->where,
        .where_count = read_heads(case_field(entry, "where", NULL), question->where),
    };
}

static struct what_if_effects run(const struct scene *scene, const struct compute *compute,
                                  struct question *question, size_t top)
{
    struct what_if_effects effects;
    struct attn_error error;
    question->masks.model = scene->masked;
    if (!what_if_run(scene->model, &question->masks, compute, &question->encoding,
                     &question->what_if, top, &effects, &error))
        fail_msg("%s", error.message);
    return effects;
}

static void assert_close(double actual, double expected, double tolerance, const char *what)
{
    if (!(fabs(actual - expected) <= tolerance))
        fail_msg("%s: %.9g, expected %.9g", what, actual, expected);
}

static double larger(const struct what_if_word *word)
{
    return fmax(word->before, word->after);
}

static void check_place(const struct what_if_place *place, const json_t *expected,
                        int64_t vocabulary)
{
    const json_t *before = case_field(expected, "before", NULL);
    const json_t *after = case_field(expected, "after", NULL);
    assert_int_equal(place->token, json_integer_value(case_field(expected, "token", NULL)));
    assert_int_equal(place->word_count, vocabulary);
    double sums[2] = {0};
    for (size_t n = 0; n < place->word_count; n++) {
        const struct what_if_word *word = &place->words[n];
        const size_t id = (size_t)word->id;
        assert_close(word->before, json_number_value(json_array_get(before, id)), 2e-6, "before");
        assert_close(word->after, json_number_value(json_array_get(after, id)), 2e-6, "after");
        sums[0] += word->before;
        sums[1] += word->after;
        if (n > 0)
            assert_true(larger(word - 1) > larger(word) ||
                        (larger(word - 1) == larger(word) && word[-1].id < word->id));
    }
    assert_close(sums[0], 1, 1e-12, "sum before");
    assert_close(sums[1], 1, 1e-12, "sum after");
    assert_close(place->divergence, json_number_value(case_field(expected, "divergence", NULL)),
                 5e-6, "divergence");
}

static void check_effects(const struct what_if_effects *effects, const json_t *entry,
                          int64_t vocabulary)
{
    const json_t *places = case_field(entry, "places", NULL);
    const json_t *embedding = json_object_get(entry, "embedding");
    assert_int_equal(effects->place_count, json_array_size(places));
    for (size_t n = 0; n < effects->place_count; n++)
        check_place(&effects->places[n], json_array_get(places, n), vocabulary);
    assert_int_equal(effects->has_embedding, embedding != NULL);
    if (!embedding)
        return;
    const json_t *tokens = case_field(entry, "tokens", NULL);
    assert_int_equal(json_array_size(tokens), json_array_size(case_field(entry, "ids", NULL)));
    assert_close(effects->embedding_distance, json_number_value(embedding), 2e-6, "embedding");
    for (size_t t = 0; t < json_array_size(tokens); t++)
        assert_close(effects->token_distances[t], json_number_value(json_array_get(tokens, t)),
                     2e-6, "token");
}

static void golden(const struct compute *compute)
{
    json_t *file = test_data_json("golden/what_if.json");
    struct scene scene = {0};
    const char *name = "";
    for (size_t n = 0; n < json_array_size(file); n++) {
        const json_t *entry = json_array_get(file, n);
        const char *next = json_string_value(case_field(entry, "model", NULL));
        if (strcmp(name, next) != 0) {
            close_scene(&scene);
            scene = open_scene(next);
            name = next;
        }
        const int64_t vocabulary = text_model_get_settings(scene.model)->vocabulary;
        struct question question;
        read_question(entry, &question);
        struct what_if_effects effects = run(&scene, compute, &question, (size_t)vocabulary);
        check_effects(&effects, entry, vocabulary);
        what_if_effects_release(&effects);
    }
    close_scene(&scene);
    json_decref(file);
}

static void test_golden(void **state)
{
    (void)state;
    each_isa(2, golden);
}

static const char *const names[] = {"causal/gpt2_f32", "causal/llama_f32", "masked_words"};

/* Twelve tokens, two of which stand for the places of masks. */
static void make_question(struct question *question)
{
    static const int32_t ids[] = {2, 8, 4, 9, 11, 8, 12, 4, 13, 6, 5, 3};
    *question = (struct question){.places = {2, 7}};
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
        struct scene scene = open_scene(names[n]);
        struct question question;
        make_question(&question);
        for (size_t cuts = 0; cuts < 3; cuts++) {
            question.what_if.cut_count = cuts;
            question.members[1][0][3] = true; /* a query without keys */
            struct what_if_effects effects = run(&scene, &compute, &question, 4);
            assert_int_equal(effects.place_count, scene.masked ? 2 : 1);
            assert_int_equal(effects.places[0].word_count, 4);
            assert_nothing_changed(&effects, 12);
            what_if_effects_release(&effects);
        }
        close_scene(&scene);
    }
    compute_destroy(&compute);
}

/* Without masks, or without what fills them, a BERT still has its embedding. */
static void test_without_masks(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct scene scene = open_scene("masked_words");
    struct question question;
    make_question(&question);
    question.what_if.ablated_count = 1;
    struct what_if_effects effects;
    struct attn_error error;
    assert_true(what_if_run(scene.model, NULL, &compute, &question.encoding, &question.what_if, 4,
                            &effects, &error));
    assert_int_equal(effects.place_count, 0);
    assert_true(effects.has_embedding && effects.embedding_distance > 1e-4);
    what_if_effects_release(&effects);
    close_scene(&scene);
    compute_destroy(&compute);
}

static void refuses(const struct scene *scene, struct question *question, const char *part)
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
    struct scene scene = open_scene("causal/gpt2_f32");
    struct question question;
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
    struct what_if_effects effects = run(&scene, &compute, &question, 1);
    what_if_effects_release(&effects);
    question.encoding.token_count = 0;
    refuses(&scene, &question, "");
    compute_destroy(&compute);
    close_scene(&scene);
}

/* Tiles of any place and stride: the cut's pairs become −inf, and no other number is touched; heads
 * and layers that are not named have no callback, or are left alone. */
static void test_tiles(void **state)
{
    (void)state;
    enum { ROWS = 5, COLUMNS = 20 };
    const struct text_model_settings model = {MODEL_BERT, 2, 3, 6, 32, 9};
    struct question question;
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

static void watch_text(const struct scene *scene, const struct compute *compute,
                       const struct question *question, struct watch *watch)
{
    const struct model_observer observer = {look_on, watch, change_of};
    struct attn_error error;
    if (!text_model_read(scene->model, compute, &question->encoding, &observer, NULL, &error))
        fail_msg("%s", error.message);
}

static void weights(const struct compute *compute)
{
    struct scene scene = open_scene("causal/gpt2_f32");
    struct question question;
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
        assert_close((double)changed.weights[0][2][n], expected, 1e-6, "weight");
    }
    assert_true(changed.weights[0][2][7 * 12 + 5] == 0.0f);
    what_if_change_destroy(changed.change);
    close_scene(&scene);
}

static void test_weights(void **state)
{
    (void)state;
    each_isa(1, weights);
}

struct attempt {
    struct scene scene;
    struct compute compute;
    struct question question;
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
        attempt.scene = open_scene(names[n]);
        attempt.compute = make_compute(1);
        make_question(&attempt.question);
        attempt.question.masks.model = attempt.scene.masked;
        attempt.question.what_if.ablated_count = attempt.question.what_if.cut_count = 1;
        attempt.question.members[0][0][5] = attempt.question.members[0][1][1] = true;
        assert_true(allocation_sweep(run_once, &attempt) >= 14);
        compute_destroy(&attempt.compute);
        close_scene(&attempt.scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_no_change_is_none),
        cmocka_unit_test(test_without_masks), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_tiles),         cmocka_unit_test(test_weights),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
