#include "look_scene.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "each_isa.h"
#include "probe/look_pass.h"
#include "scratch_folder.h"
#include "tiny_model.h"

struct encoding look_scene_encoding(const int32_t *ids, const int32_t *words, size_t count)
{
    struct encoding encoding = {.tokens = calloc(count, sizeof(struct token)),
                                .token_count = count};
    assert_non_null(encoding.tokens);
    for (size_t t = 0; t < count; t++)
        encoding.tokens[t] = (struct token){.id = ids[t], .word = words[t]};
    return encoding;
}

struct look_scene look_scene_open(const char *name)
{
    static const int32_t ids[LOOK_SCENE_TOKENS] = {1, 5, 7, 3, 4, 2};
    static const int32_t words[LOOK_SCENE_TOKENS] = {-1, 0, 0, 1, 2, -1};
    struct tiny_model tiny = tiny_model_read(name);
    char *folder = tiny_model_save(&tiny);
    struct look_scene scene = {.compute = make_compute(1),
                               .encoding = look_scene_encoding(ids, words, LOOK_SCENE_TOKENS)};
    struct attn_error error;
    if (!model_source_open(&scene.source, folder, &error) ||
        !text_model_open(&scene.model, scene.source, &error))
        fail_msg("%s", error.message);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
    return scene;
}

void look_scene_close(struct look_scene *scene)
{
    free(scene->encoding.tokens);
    compute_destroy(&scene->compute);
    text_model_close(scene->model);
    model_source_close(scene->source);
}

struct look look_scene_run(const struct look_scene *scene, const struct look_settings *settings)
{
    struct look look;
    struct attn_error error;
    if (!look_run(scene->model, &scene->compute, &scene->encoding, settings, &look, &error))
        fail_msg("%s", error.message);
    return look;
}

void look_scene_merge(const float *weights, size_t tokens, const int32_t *group, size_t units,
                      float *merged)
{
    memset(merged, 0, units * units * sizeof *merged);
    struct look_row row = {0};
    for (size_t token = 0; token < tokens; token++) {
        if (group[token] < 0)
            continue;
        row.units = merged + (size_t)group[token] * units;
        if (look_row_take(group, tokens, &row, token, weights + token * tokens, tokens))
            row = (struct look_row){0};
    }
}
