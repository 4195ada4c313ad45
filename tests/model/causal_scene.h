/* A model that tells the next token, and what it tells of a text. */
#ifndef ATTN_TESTS_CAUSAL_SCENE_H
#define ATTN_TESTS_CAUSAL_SCENE_H

#include "model/causal_model.h"

struct causal_scene {
    struct model_source *source;
    struct causal_model *model;
    int64_t vocabulary;
};

/* Of a directory or GGUF file; fails the test where it cannot be opened. */
struct causal_scene causal_scene_open(const char *path);
void causal_scene_close(struct causal_scene *scene);

/* How a text is read. */
struct causal_manner {
    int64_t parts[4]; /* tokens of successive calls, the last number over and over; 0: all left */
    int64_t chunk;    /* 0: as many as there are */
    enum cache_type cache;
    attn_precision precision;
};

/* logits[tokens][vocabulary], newly allocated, from a session of its own. */
float *causal_scene_logits(const struct causal_scene *scene, const struct compute *compute,
                           const struct causal_manner *manner, const int32_t *ids, int64_t tokens);

/* A session of these many texts of the model's whole context, or a failed test. */
struct causal_session *causal_scene_session(const struct causal_scene *scene,
                                            const struct compute *compute, int64_t sequences,
                                            enum cache_type cache);

/* Texts of Transformers' and what it tells of them: tests/data/models/causal, made by
 * scripts/golden_causal.py. */
struct causal_golden {
    struct causal_scene scene;
    int64_t tokens;
    int32_t *ids;     /* [tokens] */
    float *logits;    /* [tokens][vocabulary] */
    float *attention; /* [layers][heads][8][8], of the first tokens */
};

/* The model NAME, a directory or NAME.gguf, with NAME.json. */
struct causal_golden causal_golden_open(const char *name);
void causal_golden_close(struct causal_golden *golden);

/* "gpt2_f32", …, "llama_blocks.gguf"; NULL behind the last. */
extern const char *const causal_golden_names[];

/* The largest |a − b|, NaN where one is NaN. */
double causal_distance(const float *a, const float *b, int64_t count);

#endif
