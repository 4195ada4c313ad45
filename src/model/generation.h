/* Text that a model writes on: token after token until it ends. */
#ifndef ATTN_MODEL_GENERATION_H
#define ATTN_MODEL_GENERATION_H

#include "model/causal_model.h"
#include "model/sampler.h"

enum generation_end {
    GENERATION_END_TOKEN, /* the model ended the text; the token is not part of it */
    GENERATION_LIMIT,     /* as many tokens as were asked for */
    GENERATION_STOP,      /* a stop string came; the text ends before it */
    GENERATION_CONTEXT,   /* the context is full */
    GENERATION_REFUSED    /* the listener wanted no more */
};

struct generation_settings {
    struct sampler_settings sampler; /* sequence n draws with seed + n */
    int64_t limit;                   /* new tokens; −1: until the end; 0: nothing is read */
    const char *const *stops;        /* [stop_count], UTF-8, not empty */
    size_t stop_count;
    const int32_t *end_ids; /* [end_count] */
    size_t end_count;
};

/* A token as it is written. */
struct written_token {
    int64_t sequence; /* of the prompts, from 0 */
    int32_t id;
    double log_probability; /* see struct drawn_token */
    const char *text;       /* what can be shown now, whole characters: its own, and what waited
                               before (a character's begin; what may become a stop string) */
    size_t text_size;
};

/* Who listens. */
struct generation_listener {
    /* Each token as it comes; false ends its sequence. May be NULL. */
    bool (*token)(void *user, const struct written_token *token);
    /* A sequence's end, with the rest of its text. May be NULL. */
    void (*end)(void *user, int64_t sequence, enum generation_end end, const char *text,
                size_t text_size);
    /* One prompt that is longer than a chunk: after each chunk but the last, tokens read of all;
     * false ends the sequence, which then holds those. May be NULL. */
    bool (*reading)(void *user, int64_t tokens, int64_t all);
    void *user;
    const struct model_observer *observer; /* of every read of one sequence; may be NULL */
};

struct prompt {
    const int32_t *ids;
    int64_t count;
    int64_t read; /* of these the first that its sequence holds already, as its last; < count */
};

/* Writes on from each prompt in its own sequence of the session (prompt n in sequence n; what a
 * sequence holds before its prompt is no text for penalties), side by side: the same tokens as each
 * alone, within rounding. Prompts that do not fit are refused before anything
 * is computed: "the prompt has 9 tokens, the model has 8 positions". With a context of exactly the
 * prompt's length one token more can be told, and none be read: the last token of a sequence is
 * drawn and not read, an end token too. So a sequence holds at its end, beside what it held before,
 * its prompt and all but the last of what was told, or all of it where an end token came.
 *
 * With an observer there is one prompt. A tokenizer NULL:
 * tokens have no text, and there are no stop strings. After a failure sequences hold what was read
 * until then, and no end is told of those that had not ended. */
bool generate(struct causal_session *session, const struct tokenizer *tokenizer,
              const struct generation_settings *settings, const struct prompt *prompts,
              int64_t prompt_count, const struct generation_listener *listener,
              struct attn_error *error);

#endif
