/* What tests of looks share: a small model with a text of it, and token rows merged into units. */
#ifndef ATTN_TESTS_PROBE_LOOK_SCENE_H
#define ATTN_TESTS_PROBE_LOOK_SCENE_H

#include "model/model_source.h"
#include "probe/look.h"

enum { LOOK_SCENE_TOKENS = 6 };

struct look_scene {
    struct model_source *source;
    struct text_model *model;
    struct compute compute;
    struct encoding encoding;
};

/* A model of tiny_model.h, and six tokens of it: an added one, three words of which the first has
 * two pieces, an added one. */
struct look_scene look_scene_open(const char *name);
void look_scene_close(struct look_scene *scene);

/* A text whose pieces make the words `words` (TOKEN_NO_WORD for added tokens). */
struct encoding look_scene_encoding(const int32_t *ids, const int32_t *words, size_t count);

/* look_run, which must not fail. */
struct look look_scene_run(const struct look_scene *scene, const struct look_settings *settings);

/* Merges weights[tokens][tokens] into merged[units][units] as a look does, row by row: group[t] is
 * the unit of token t, or −1 for one that is left out. */
void look_scene_merge(const float *weights, size_t tokens, const int32_t *group, size_t units,
                      float *merged);

#endif
