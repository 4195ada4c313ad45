/* What a change does, against Transformers' models with hooks: tests/data/golden/what_if.json, made
 * by scripts/golden_what_if.py. */
#include <math.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "what_if_scene.h"

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
static void read_question(const json_t *entry, struct what_if_question *question)
{
    *question = (struct what_if_question){0};
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
    struct what_if_scene scene = {0};
    const char *name = "";
    for (size_t n = 0; n < json_array_size(file); n++) {
        const json_t *entry = json_array_get(file, n);
        const char *next = json_string_value(case_field(entry, "model", NULL));
        if (strcmp(name, next) != 0) {
            what_if_scene_close(&scene);
            scene = what_if_scene_open(next);
            name = next;
        }
        const int64_t vocabulary = text_model_get_settings(scene.model)->vocabulary;
        struct what_if_question question;
        read_question(entry, &question);
        struct what_if_effects effects =
            what_if_scene_run(&scene, compute, &question, (size_t)vocabulary);
        check_effects(&effects, entry, vocabulary);
        what_if_effects_release(&effects);
    }
    what_if_scene_close(&scene);
    json_decref(file);
}

static void test_golden(void **state)
{
    (void)state;
    each_isa(2, golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
