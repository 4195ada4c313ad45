/* A model and one text, and what its gradient shows: tests/data/golden/text_gradient.{json,bin},
 * made by scripts/golden_text_gradient.py. */
#ifndef ATTN_TESTS_TEXT_GRADIENT_SCENE_H
#define ATTN_TESTS_TEXT_GRADIENT_SCENE_H

#include <jansson.h>

#include "model/text_gradient.h"

struct gradient_scene {
    struct model_source *source;
    struct text_model *model;
    struct encoding encoding; /* of tokens alone */
};

/* Of a directory or GGUF file, without a text; fails the test where it cannot be opened. */
struct gradient_scene gradient_scene_open(const char *path);
void gradient_scene_close(struct gradient_scene *scene);

/* The text: `tokens` tokens of id 0 and type 0. */
void gradient_scene_give(struct gradient_scene *scene, size_t tokens);

/* The model and the text of one of the golden file's "texts". */
struct gradient_scene gradient_scene_golden(const json_t *golden);

/* Calls body for each of the file's texts. */
void gradient_scene_each(const json_t *file,
                         void (*body)(const json_t *golden, const struct gradient_scene *scene,
                                      const struct compute *compute),
                         const struct compute *compute);

/* What an observer is shown of all layers, which must come from the last to the first. */
struct gradient_watch {
    const struct gradient_scene *scene;
    float *gradient; /* [layers][heads][tokens][tokens], by the weights; NULL: not wanted */
    int64_t next;    /* the layer that comes now; -1 behind the first */
    int64_t stop;    /* the layer at which to say no, or -1 */
};

/* text_gradient_run with this watch, whose gradient and stop are set. */
bool gradient_scene_run(const struct gradient_scene *scene, const struct compute *compute,
                        struct gradient_watch *watch, struct gradient_subject *subject,
                        struct attn_error *error);

/* Element (0, head, row, c) of an f32 view. */
float gradient_scene_at(const attn_tensor *tensor, int64_t head, int64_t row, int64_t c);

#endif
