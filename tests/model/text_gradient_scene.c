#include "text_gradient_scene.h"

#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"

struct gradient_scene gradient_scene_open(const char *path)
{
    struct gradient_scene scene = {0};
    struct attn_error error;
    if (!model_source_open(&scene.source, path, &error) ||
        !text_model_open(&scene.model, scene.source, &error))
        fail_msg("%s", error.message);
    return scene;
}

void gradient_scene_give(struct gradient_scene *scene, size_t tokens)
{
    scene->encoding.tokens = calloc(tokens + 1, sizeof *scene->encoding.tokens);
    assert_non_null(scene->encoding.tokens);
    scene->encoding.token_count = tokens;
}

void gradient_scene_close(struct gradient_scene *scene)
{
    free(scene->encoding.tokens);
    text_model_close(scene->model);
    model_source_close(scene->source);
}

static int64_t whole(const json_t *array, size_t index)
{
    return json_integer_value(json_array_get(array, index));
}

struct gradient_scene gradient_scene_golden(const json_t *golden)
{
    char *path = test_data_path(json_string_value(case_field(golden, "model", NULL)));
    struct gradient_scene scene = gradient_scene_open(path);
    free(path);
    const json_t *ids = case_field(golden, "ids", NULL), *types = case_field(golden, "types", NULL);
    gradient_scene_give(&scene, json_array_size(ids));
    for (size_t t = 0; t < scene.encoding.token_count; t++)
        scene.encoding.tokens[t] =
            (struct token){.id = (int32_t)whole(ids, t), .type = (int32_t)whole(types, t)};
    return scene;
}

void gradient_scene_each(const json_t *file,
                         void (*body)(const json_t *golden, const struct gradient_scene *scene,
                                      const struct compute *compute),
                         const struct compute *compute)
{
    const json_t *texts = case_field(file, "texts", NULL);
    assert_int_equal(json_array_size(texts), 30);
    for (size_t n = 0; n < json_array_size(texts); n++) {
        const json_t *golden = json_array_get(texts, n);
        struct gradient_scene scene = gradient_scene_golden(golden);
        body(golden, &scene, compute);
        gradient_scene_close(&scene);
    }
}

float gradient_scene_at(const attn_tensor *tensor, int64_t head, int64_t row, int64_t c)
{
    return ((const float *)tensor
                ->data)[head * tensor->stride[1] + row * tensor->stride[2] + c * tensor->stride[3]];
}

/* ∂y/∂P = dO·Vᵀ of each head. */
static void weights_gradient(const struct attention_record *record, const attn_tensor *d_o,
                             float *gradient)
{
    const int64_t heads = d_o->shape[1], tokens = d_o->shape[2], d = d_o->shape[3];
    const int64_t group = heads / record->v.shape[1];
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < tokens; i++)
            for (int64_t j = 0; j < tokens; j++) {
                double sum = 0.0;
                for (int64_t c = 0; c < d; c++)
                    sum += (double)gradient_scene_at(d_o, h, i, c) *
                           (double)gradient_scene_at(&record->v, h / group, j, c);
                gradient[(h * tokens + i) * tokens + j] = (float)sum;
            }
}

static bool observe(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, const attn_tensor *d_o,
                    struct attn_error *error)
{
    (void)compute;
    struct gradient_watch *watch = user;
    const struct text_model_settings *settings = text_model_get_settings(watch->scene->model);
    const int64_t tokens = (int64_t)watch->scene->encoding.token_count;
    assert_int_equal(layer, watch->next--);
    assert_int_equal(d_o->shape[0], 1);
    assert_int_equal(d_o->shape[1], settings->heads);
    assert_int_equal(d_o->shape[2], tokens);
    assert_int_equal(d_o->shape[3], record->v.shape[3]);
    if (layer == watch->stop)
        return attn_error_set(error, "that is enough");
    if (watch->gradient)
        weights_gradient(record, d_o, watch->gradient + layer * settings->heads * tokens * tokens);
    return true;
}

bool gradient_scene_run(const struct gradient_scene *scene, const struct compute *compute,
                        struct gradient_watch *watch, struct gradient_subject *subject,
                        struct attn_error *error)
{
    watch->scene = scene;
    watch->next = text_model_get_settings(scene->model)->layers - 1;
    const struct gradient_observer observer = {observe, watch};
    return text_gradient_run(scene->model, compute, &scene->encoding, &observer, subject, error);
}
