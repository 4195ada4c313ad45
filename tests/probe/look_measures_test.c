/* What look makes of the weights, against PyTorch: tests/data/golden/look_measures.json, made by
 * scripts/golden_look_measures.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "probe/look.h"

struct scene {
    const json_t *entry;
    struct model_source *source;
    struct text_model *model;
    const struct text_model_settings *shape;
    struct compute compute;
    struct encoding encoding;
    struct look_head heads[16]; /* in the file's order: means, then single heads */
    size_t means, all;
};

static struct scene open_scene(const json_t *entry, int threads)
{
    struct scene scene = {.entry = entry, .compute = make_compute(threads)};
    struct attn_error error;
    char name[64];
    snprintf(name, sizeof name, "models/%s", json_string_value(case_field(entry, "model", NULL)));
    char *folder = test_data_path(name);
    if (!model_source_open(&scene.source, folder, &error) ||
        !text_model_open(&scene.model, scene.source, &error))
        fail_msg("%s", error.message);
    free(folder);

    const json_t *ids = case_field(entry, "ids", NULL), *words = case_field(entry, "words", NULL);
    scene.encoding.token_count = json_array_size(ids);
    scene.encoding.tokens = calloc(scene.encoding.token_count, sizeof *scene.encoding.tokens);
    assert_non_null(scene.encoding.tokens);
    for (size_t t = 0; t < scene.encoding.token_count; t++) {
        scene.encoding.tokens[t].id = (int32_t)json_integer_value(json_array_get(ids, t));
        scene.encoding.tokens[t].word = (int32_t)json_integer_value(json_array_get(words, t));
    }

    scene.shape = text_model_get_settings(scene.model);
    scene.heads[scene.all++] = (struct look_head){LOOK_MEAN, LOOK_MEAN};
    for (int64_t layer = 0; layer < scene.shape->layers; layer++)
        scene.heads[scene.all++] = (struct look_head){layer, LOOK_MEAN};
    scene.means = scene.all;
    for (int64_t layer = 0; layer < scene.shape->layers; layer++)
        for (int64_t head = 0; head < scene.shape->heads; head++)
            scene.heads[scene.all++] = (struct look_head){layer, head};
    return scene;
}

static void close_scene(struct scene *scene)
{
    free(scene->encoding.tokens);
    compute_destroy(&scene->compute);
    text_model_close(scene->model);
    model_source_close(scene->source);
}

static struct look look_at(const struct scene *scene, const struct look_settings *settings)
{
    struct look look;
    struct attn_error error;
    if (!look_run(scene->model, &scene->compute, &scene->encoding, settings, &look, &error))
        fail_msg("%s", error.message);
    return look;
}

/* Gradients are of f32 differences that nearly cancel. */
static void check_matrix(const struct scene *scene, const char *measure, size_t matrix,
                         const float *weights, size_t units)
{
    const double tolerance = strcmp(measure, "grad") == 0 ? 1e-5 : 2e-6;
    const json_t *rows = json_array_get(case_field(scene->entry, measure, NULL), matrix);
    assert_int_equal(json_array_size(rows), units * units);
    for (size_t n = 0; n < units * units; n++) {
        const double expected = json_number_value(json_array_get(rows, n));
        if (!(fabs((double)weights[n] - expected) <= tolerance))
            fail_msg("%s of %s, matrix %zu, row %zu, column %zu: %.8f, expected %.8f", measure,
                     json_string_value(json_object_get(scene->entry, "model")), matrix, n / units,
                     n % units, (double)weights[n], expected);
    }
}

/* All matrices at once, and each one alone, which takes other ways. */
static void check_measure(const struct scene *scene, enum look_measure measure, const char *name)
{
    struct look_settings settings = {
        .heads = scene->heads,
        .head_count = measure == LOOK_ROLLOUT ? scene->means : scene->all,
        .measure = measure,
    };
    const size_t count = settings.head_count;
    struct look together = look_at(scene, &settings);
    const size_t units = together.units;
    for (size_t n = 0; n < count; n++)
        check_matrix(scene, name, n, together.weights + n * units * units, units);
    for (size_t n = 0; n < count; n++) {
        settings.heads = &scene->heads[n];
        settings.head_count = 1;
        struct look alone = look_at(scene, &settings);
        check_matrix(scene, name, n, alone.weights, units);
        look_release(&alone);
    }
    look_release(&together);
}

static void check_all(enum look_measure measure, const char *name)
{
    json_t *file = test_data_json("golden/look_measures.json");
    assert_true(json_array_size(file) >= 4);
    for (size_t n = 0; n < json_array_size(file); n++) {
        struct scene scene = open_scene(json_array_get(file, n), 1 + (int)(n % 2));
        check_measure(&scene, measure, name);
        close_scene(&scene);
    }
    json_decref(file);
}

static void test_norms(void **state)
{
    (void)state;
    check_all(LOOK_NORM, "norm");
}

static void test_rollouts(void **state)
{
    (void)state;
    check_all(LOOK_ROLLOUT, "rollout");
}

static void test_gradients(void **state)
{
    (void)state;
    check_all(LOOK_GRADIENT, "grad");
}

/* Nothing left out: each row sums to one, or is empty where no gradient is positive. */
static void test_shares(void **state)
{
    (void)state;
    json_t *file = test_data_json("golden/look_measures.json");
    struct scene scene = open_scene(json_array_get(file, 0), 1);
    for (int measure = LOOK_WEIGHTS; measure <= LOOK_GRADIENT; measure++) {
        const struct look_settings settings = {
            .heads = scene.heads,
            .head_count = scene.means,
            .unit = LOOK_PIECES,
            .special = true,
            .measure = (enum look_measure)measure,
        };
        struct look look = look_at(&scene, &settings);
        for (size_t row = 0; row < scene.means * look.units; row++) {
            double sum = 0.0;
            for (size_t n = 0; n < look.units; n++)
                sum += (double)look.weights[row * look.units + n];
            assert_true(fabs(sum - 1.0) <= 1e-5 || (measure == LOOK_GRADIENT && sum == 0.0));
        }
        look_release(&look);
    }
    close_scene(&scene);
    json_decref(file);
}

static const struct attention_change *no_change(void *user, int64_t layer)
{
    (void)user, (void)layer;
    return NULL;
}

static void test_refusals(void **state)
{
    (void)state;
    json_t *file = test_data_json("golden/look_measures.json");
    struct scene scene = open_scene(json_array_get(file, 0), 1);
    const struct look_head head = {1, 1};
    struct look_settings settings = {.heads = &head, .head_count = 1, .measure = LOOK_ROLLOUT};
    struct look look;
    struct attn_error error;
    assert_false(look_run(scene.model, &scene.compute, &scene.encoding, &settings, &look, &error));
    assert_message(&error, "L1H1: a rollout is of layers");
    settings.measure = LOOK_GRADIENT;
    settings.change = no_change;
    assert_false(look_run(scene.model, &scene.compute, &scene.encoding, &settings, &look, &error));
    assert_message(&error, "without a change");
    assert_null(look.first_token);
    close_scene(&scene);
    json_decref(file);
}

struct attempt {
    const struct scene *scene;
    enum look_measure measure;
};

static bool look_once(void *user, struct attn_error *error)
{
    const struct attempt *attempt = user;
    const struct look_settings settings = {
        .heads = attempt->scene->heads,
        .head_count = attempt->scene->means,
        .measure = attempt->measure,
        .links = 2,
        .vectors = true,
    };
    struct look look;
    bool done = look_run(attempt->scene->model, &attempt->scene->compute, &attempt->scene->encoding,
                         &settings, &look, error);
    if (!done)
        assert_null(look.links);
    look_release(&look);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    json_t *file = test_data_json("golden/look_measures.json");
    struct scene scene = open_scene(json_array_get(file, 2), 1);
    for (int measure = LOOK_WEIGHTS; measure <= LOOK_GRADIENT; measure++) {
        struct attempt attempt = {&scene, (enum look_measure)measure};
        assert_true(allocation_sweep(look_once, &attempt) >= 16);
    }
    close_scene(&scene);
    json_decref(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms),     cmocka_unit_test(test_rollouts),
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
