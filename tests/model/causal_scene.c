#include "causal_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"

const char *const causal_golden_names[] = {"gpt2_f32",          "gpt2_f16",  "llama_f32",
                                           "llama_bf16",        "gpt2.gguf", "llama_bias.gguf",
                                           "llama_blocks.gguf", NULL};

struct causal_scene causal_scene_open(const char *path)
{
    struct causal_scene scene = {0};
    struct attn_error error;
    if (!model_source_open(&scene.source, path, &error) ||
        !causal_model_open(&scene.model, scene.source, &error))
        fail_msg("%s", error.message);
    scene.vocabulary = causal_model_get_settings(scene.model)->vocabulary;
    return scene;
}

void causal_scene_close(struct causal_scene *scene)
{
    causal_model_close(scene->model);
    model_source_close(scene->source);
}

static struct causal_session *create(const struct causal_scene *scene,
                                     const struct compute *compute,
                                     const struct causal_session_settings *settings)
{
    struct causal_session *session;
    struct attn_error error;
    if (!causal_session_create(&session, scene->model, compute, settings, &error))
        fail_msg("%s", error.message);
    return session;
}

struct causal_session *causal_scene_session(const struct causal_scene *scene,
                                            const struct compute *compute, int64_t sequences,
                                            enum cache_type cache)
{
    const struct causal_session_settings settings = {
        .sequences = sequences,
        .capacity = causal_model_get_settings(scene->model)->context,
        .cache = cache,
        .precision = ATTN_PRECISION_EXACT,
    };
    return create(scene, compute, &settings);
}

float *causal_scene_logits(const struct causal_scene *scene, const struct compute *compute,
                           const struct causal_manner *manner, const int32_t *ids, int64_t tokens)
{
    const struct causal_session_settings settings = {
        .sequences = 1,
        .capacity = tokens,
        .chunk = manner->chunk,
        .cache = manner->cache,
        .precision = manner->precision,
    };
    struct causal_session *session = create(scene, compute, &settings);
    float *logits = calloc((size_t)(tokens * scene->vocabulary), sizeof *logits);
    assert_non_null(logits);
    size_t part = 0;
    for (int64_t begin = 0, count; begin < tokens; begin += count) {
        const int64_t left = tokens - begin;
        if (part + 1 < 4 && manner->parts[part + 1] > 0 && begin > 0)
            part++;
        count = manner->parts[part] > 0 && manner->parts[part] < left ? manner->parts[part] : left;
        const int64_t starts[] = {0, count};
        const struct causal_input input = {1, NULL, starts, ids + begin, CAUSAL_ALL};
        struct attn_error error;
        if (!causal_session_read(session, &input, NULL, logits + begin * scene->vocabulary, &error))
            fail_msg("%s", error.message);
        assert_int_equal(causal_session_length(session, 0), begin + count);
    }
    causal_session_destroy(session);
    return logits;
}

struct causal_golden causal_golden_open(const char *name)
{
    char file[128];
    snprintf(file, sizeof file, "models/causal/%s", name);
    char *path = test_data_path(file);
    struct causal_golden golden = {.scene = causal_scene_open(path)};
    free(path);

    const char *end = strstr(name, ".gguf");
    const int size = end ? (int)(end - name) : (int)strlen(name);
    snprintf(file, sizeof file, "models/causal/%.*s.json", size, name);
    json_t *object = test_data_json(file);
    const json_t *ids = case_field(object, "ids", NULL), *rows = case_field(object, "logits", NULL);
    golden.tokens = (int64_t)json_array_size(ids);
    golden.ids = calloc((size_t)golden.tokens, sizeof *golden.ids);
    golden.logits =
        calloc((size_t)(golden.tokens * golden.scene.vocabulary), sizeof *golden.logits);
    assert_true(golden.ids && golden.logits);
    for (int64_t t = 0; t < golden.tokens; t++) {
        const json_t *row = json_array_get(rows, (size_t)t);
        assert_int_equal(json_array_size(row), golden.scene.vocabulary);
        golden.ids[t] = (int32_t)json_integer_value(json_array_get(ids, (size_t)t));
        for (int64_t c = 0; c < golden.scene.vocabulary; c++)
            golden.logits[t * golden.scene.vocabulary + c] =
                (float)json_number_value(json_array_get(row, (size_t)c));
    }
    golden.attention = case_numbers(case_field(object, "attention", NULL), NULL);
    json_decref(object);
    return golden;
}

void causal_golden_close(struct causal_golden *golden)
{
    causal_scene_close(&golden->scene);
    free(golden->ids);
    free(golden->logits);
    free(golden->attention);
}

double causal_distance(const float *a, const float *b, int64_t count)
{
    double largest = 0.0;
    for (int64_t n = 0; n < count; n++) {
        const double distance = fabs((double)a[n] - (double)b[n]);
        if (!(distance <= largest))
            largest = distance;
        if (isnan(largest))
            break;
    }
    return largest;
}
