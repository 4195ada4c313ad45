#include "what_if_scene.h"

#include <stdio.h>
#include <stdlib.h>

#include "cmocka_test.h"
#include "test_data.h"

struct what_if_scene what_if_scene_open(const char *name)
{
    char file[128];
    snprintf(file, sizeof file, "models/%s", name);
    char *path = test_data_path(file);
    struct what_if_scene scene = {0};
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

void what_if_scene_close(struct what_if_scene *scene)
{
    masked_words_close(scene->masked);
    text_model_close(scene->model);
    model_source_close(scene->source);
}

struct what_if_effects what_if_scene_run(const struct what_if_scene *scene,
                                         const struct compute *compute,
                                         struct what_if_question *question, size_t top)
{
    struct what_if_effects effects;
    struct attn_error error;
    question->masks.model = scene->masked;
    if (!what_if_run(scene->model, &question->masks, compute, &question->encoding,
                     &question->what_if, top, &effects, &error))
        fail_msg("%s", error.message);
    return effects;
}
