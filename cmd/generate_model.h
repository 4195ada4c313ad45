/* All that a run of `attn generate` writes with. */
#ifndef ATTN_CMD_GENERATE_MODEL_H
#define ATTN_CMD_GENERATE_MODEL_H

#include "generate_options.h"
#include "session.h"
#include "text/chat_template.h"

struct generator {
    const struct generate_options *options;
    struct session session;
    struct causal_settings settings;
    struct model_manners manners;
    struct chat_template *chat; /* NULL where prompts are no turns */
    int64_t positions;          /* that may be used: -c, or the model's */
    struct causal_model *model;
    struct causal_session *texts;
};

/* Start from zeros; generator_close undoes whatever was done, also after a failure. Opens all but
 * the weights. Refuses a context that the model has not, and a chat template that is not known or
 * missing where one is needed. */
bool generator_open(struct generator *generator, const struct generate_options *options,
                    struct attn_error *error);
void generator_close(struct generator *generator);

/* The weights, and room for *granted texts of `longest` prompt tokens each and what may be written
 * behind them: `sequences`, or fewer where memory has no room for so many. With a picture the
 * prompt is read at once. */
bool generator_start(struct generator *generator, int64_t sequences, int64_t longest,
                     int64_t *granted, struct attn_error *error);

/* Appends the token ids of a prompt, or of the conversation's begin where prompts are turns.
 * Refuses one without a token and one that does not fit, calling it `name`; says on standard error
 * which bytes the vocabulary has not. */
bool generator_encode(const struct generator *generator, const struct text *text, const char *name,
                      struct chat_tokens *tokens, struct attn_error *error);

/* Appends a user's turn and what makes the model answer; the system text of --system before the
 * first turn. Says which bytes the vocabulary has not. */
bool generator_encode_turn(const struct generator *generator, const struct text *text,
                           const char *name, struct chat_tokens *tokens, struct attn_error *error);

/* What generate() is asked for; sequence 0 draws with the seed + `first`. */
struct generation_settings generator_settings(const struct generator *generator, int64_t first);

/* Tells the seed where it was drawn and matters. */
void generator_tell_seed(const struct generator *generator);

#endif
