/* Scores of heads against NumPy over Transformers' attention: see scripts/golden_heads.py. */
#include "probe/head_scores.h"

#include <math.h>
#include <stdlib.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "test_data.h"

/* A model of the golden file and its texts. */
struct scene {
    const json_t *golden;
    struct model_source *source;
    struct text_model *model;
    struct compute compute;
    size_t text_count;
    struct encoding *texts;
};

static struct encoding make_encoding(const json_t *text)
{
    const json_t *ids = json_object_get(text, "ids"), *added = json_object_get(text, "added");
    const size_t count = json_array_size(ids);
    struct encoding encoding = {.tokens = calloc(count, sizeof(struct token)),
                                .token_count = count};
    assert_non_null(encoding.tokens);
    for (size_t t = 0; t < count; t++)
        encoding.tokens[t].id = (int32_t)json_integer_value(json_array_get(ids, t));
    for (size_t n = 0; n < json_array_size(added); n++)
        encoding.tokens[json_integer_value(json_array_get(added, n))].word = TOKEN_NO_WORD;
    return encoding;
}

static struct scene open_scene(const json_t *golden)
{
    struct scene scene = {.golden = golden, .compute = make_compute(2)};
    char name[256];
    snprintf(name, sizeof name, "models/%s", json_string_value(json_object_get(golden, "model")));
    char *path = test_data_path(name);
    struct attn_error error;
    if (!model_source_open(&scene.source, path, &error) ||
        !text_model_open(&scene.model, scene.source, &error))
        fail_msg("%s", error.message);
    free(path);
    const json_t *texts = json_object_get(golden, "texts");
    scene.text_count = json_array_size(texts);
    scene.texts = calloc(scene.text_count, sizeof *scene.texts);
    assert_non_null(scene.texts);
    for (size_t n = 0; n < scene.text_count; n++)
        scene.texts[n] = make_encoding(json_array_get(texts, n));
    return scene;
}

static void close_scene(struct scene *scene)
{
    for (size_t n = 0; n < scene->text_count; n++)
        free(scene->texts[n].tokens);
    free(scene->texts);
    compute_destroy(&scene->compute);
    text_model_close(scene->model);
    model_source_close(scene->source);
}

static bool survey_once(void *user, struct attn_error *error)
{
    struct scene *scene = user;
    struct head_collector *collector;
    struct head_survey survey;
    bool done = head_collector_create(&collector, text_model_get_settings(scene->model), error);
    for (size_t n = 0; done && n < scene->text_count; n++)
        done =
            head_collector_add(collector, scene->model, &scene->compute, &scene->texts[n], error);
    done = done && head_collector_finish(collector, &survey, error);
    head_collector_destroy(collector);
    if (done)
        head_survey_release(&survey);
    return done;
}

static void compare_scores(const struct head_scores *scores, const json_t *expected)
{
    const double actual[] = {
        scores->entropy, scores->distance,   scores->self, scores->previous,  scores->next,
        scores->first,   scores->separators, scores->sink, scores->duplicate, scores->induction};
    enum { COUNT = sizeof actual / sizeof actual[0] };
    assert_int_equal(json_array_size(expected), COUNT);
    for (size_t n = 0; n < COUNT; n++) {
        const json_t *one = json_array_get(expected, n);
        if (json_is_null(one) ? isnan(actual[n]) : fabs(actual[n] - json_number_value(one)) <= 1e-5)
            continue;
        fail_msg("score %zu is %.9g, expected %.9g", n, actual[n], json_number_value(one));
    }
}

static void test_golden(void **state)
{
    (void)state;
    json_t *file = test_data_json("golden/heads.json");
    assert_true(json_array_size(file) >= 4);
    for (size_t m = 0; m < json_array_size(file); m++) {
        struct scene scene = open_scene(json_array_get(file, m));
        const struct text_model_settings *settings = text_model_get_settings(scene.model);
        struct head_collector *collector;
        struct head_survey survey;
        struct attn_error error;
        assert_true(head_collector_create(&collector, settings, &error));
        int64_t rows = 0;
        for (size_t n = 0; n < scene.text_count; n++) {
            rows += (int64_t)scene.texts[n].token_count;
            if (!head_collector_add(collector, scene.model, &scene.compute, &scene.texts[n],
                                    &error))
                fail_msg("%s", error.message);
        }
        assert_true(head_collector_finish(collector, &survey, &error));
        assert_int_equal(survey.layers, settings->layers);
        assert_int_equal(survey.heads, settings->heads);
        assert_int_equal(survey.texts, scene.text_count);
        assert_int_equal(survey.rows, rows);
        const json_t *scores = json_object_get(scene.golden, "scores");
        for (int64_t layer = 0; layer < survey.layers; layer++)
            for (int64_t head = 0; head < survey.heads; head++)
                compare_scores(&survey.scores[layer * survey.heads + head],
                               json_array_get(json_array_get(scores, (size_t)layer), (size_t)head));
        head_survey_release(&survey);
        head_collector_destroy(collector);
        close_scene(&scene);
    }
    json_decref(file);
}

static void test_refused(void **state)
{
    (void)state;
    json_t *file = test_data_json("golden/heads.json");
    struct scene scene = open_scene(json_array_get(file, 0));
    struct head_collector *collector;
    struct head_survey survey;
    struct attn_error error;
    assert_true(head_collector_create(&collector, text_model_get_settings(scene.model), &error));
    assert_false(head_collector_finish(collector, &survey, &error));
    assert_message(&error, "no text");
    struct encoding empty = {0};
    assert_false(head_collector_add(collector, scene.model, &scene.compute, &empty, &error));
    assert_message(&error, "0 tokens, but must have 1 to 10");
    struct token tokens[11] = {{.id = 1}};
    struct encoding longer = {.tokens = tokens, .token_count = 11};
    assert_false(head_collector_add(collector, scene.model, &scene.compute, &longer, &error));
    assert_message(&error, "11 tokens, but must have 1 to 10");
    head_collector_destroy(collector);
    head_collector_destroy(NULL);
    close_scene(&scene);
    json_decref(file);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    json_t *file = test_data_json("golden/heads.json");
    struct scene scene = open_scene(json_array_get(file, 1));
    assert_true(allocation_sweep(survey_once, &scene) >= 8);
    close_scene(&scene);
    json_decref(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
