/* What tests of changes share: a model, and a text of it with a change. */
#ifndef ATTN_TESTS_PROBE_WHAT_IF_SCENE_H
#define ATTN_TESTS_PROBE_WHAT_IF_SCENE_H

#include "model/model_source.h"
#include "probe/what_if.h"

enum { MOST_TOKENS = 16, MOST_HEADS = 8, MOST_CUTS = 4 };

/* A model of tests/data/models. */
struct what_if_scene {
    struct model_source *source;
    struct text_model *model;
    struct masked_words *masked; /* NULL where it is no BERT */
};

struct what_if_scene what_if_scene_open(const char *name);
void what_if_scene_close(struct what_if_scene *scene);

/* A text and a change, with room for what they point to; not to be moved. */
struct what_if_question {
    struct token tokens[MOST_TOKENS];
    struct encoding encoding;
    int64_t places[MOST_TOKENS];
    struct what_if_masks masks;
    struct look_head ablated[MOST_HEADS], where[MOST_HEADS];
    bool members[MOST_CUTS][2][MOST_TOKENS];
    struct what_if_cut cuts[MOST_CUTS];
    struct what_if what_if;
};

/* what_if_run, which must not fail. */
struct what_if_effects what_if_scene_run(const struct what_if_scene *scene,
                                         const struct compute *compute,
                                         struct what_if_question *question, size_t top);

#endif
