/* What a model writes: shown while it comes, and kept for JSON, for pictures and for the turns that
 * follow. */
#ifndef ATTN_CMD_GENERATE_WRITTEN_H
#define ATTN_CMD_GENERATE_WRITTEN_H

#include <signal.h>

#include "generate_model.h"

/* One text behind its prompt. */
struct written {
    int32_t *ids;             /* [count] */
    float *log_probabilities; /* [count]: ln, under the model's own distribution */
    size_t count, capacity;
    struct attn_buffer text;
    enum generation_end end;
};

void written_release(struct written *written);

/* The listener of a generation. Start from zeros but for what is set. */
struct writing {
    struct written *texts;                       /* [sequences], from zeros */
    bool shown;                                  /* on standard output, as it comes */
    const volatile sig_atomic_t *is_interrupted; /* ends the texts where it is not 0; may be NULL */
    bool shows_progress;                         /* of a long prompt, on standard error */
    bool has_failed;                             /* with `error` */
    struct attn_error error;
};

/* Writes on from the prompts, as generate() does. False also where the writing has failed. */
bool writing_run(struct writing *writing, const struct generator *generator,
                 const struct generation_settings *settings, const struct prompt *prompts,
                 int64_t prompt_count, const struct model_observer *observer,
                 struct attn_error *error);

/* A line of JSON: {"prompt", "text", "prompt_tokens", "tokens", "logprobs", "end", "seed"}; seed is
 * null at temperature 0. */
void written_add_json(const struct written *written, const struct text *prompt,
                      size_t prompt_tokens, const struct sampler_settings *sampler,
                      struct attn_buffer *out);

#endif
