/* Small models that write, and what a listener was told. */
#ifndef ATTN_TESTS_GENERATION_SCENE_H
#define ATTN_TESTS_GENERATION_SCENE_H

#include <jansson.h>

#include "causal_scene.h"
#include "model/generation.h"

enum { ROOM = 64, SEQUENCES = 4 };

/* What a listener was told of each sequence. */
struct told {
    struct {
        int32_t ids[ROOM];
        double log_probabilities[ROOM];
        int64_t count;
        struct attn_buffer text;
        bool ended;
        enum generation_end end;
    } of[SEQUENCES];
    int64_t wanted; /* tokens of a sequence, after which the listener refuses; 0: all */
};

/* Those of a listener whose user is a struct told. */
bool take_token(void *user, const struct written_token *token);
void take_end(void *user, int64_t sequence, enum generation_end end, const char *text,
              size_t text_size);
void told_release(struct told *told);

/* A model of models.json, and a tokenizer for it: the words are a, b, c … */
struct world {
    char *folder;
    struct causal_scene scene;
    struct compute compute;
    struct tokenizer *tokenizer;
};

struct world world_open(const char *name);
void world_close(struct world *world);

/* Of the model's whole context, with an f32 cache. */
struct causal_session *open_session(const struct world *world, int64_t sequences);

/* The likeliest word, always, until the end. */
struct generation_settings greedy(void);

/* Writes on from prompts, or fails the test; all sequences end. */
void write_on(const struct world *world, struct causal_session *session,
              const struct generation_settings *settings, const struct prompt *prompts,
              int64_t count, struct told *told);

/* One prompt in a session of its own. */
void write_alone(const struct world *world, const struct generation_settings *settings,
                 const struct prompt *prompt, struct told *told);

/* A list of a case; returns how many there are. */
int64_t read_ids(const json_t *list, int32_t ids[ROOM]);

/* Prompts of words that every model has. */
extern const int32_t words[10];
extern const struct prompt several[SEQUENCES];

/* An observer whose user, an int64_t, counts the tokens that are read. */
bool count_rows(void *user, int64_t layer, const struct compute *compute,
                const struct attention_record *record, struct attn_error *error);

#endif
