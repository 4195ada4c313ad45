/* The command line of `attn generate`. */
#ifndef ATTN_CMD_GENERATE_OPTIONS_H
#define ATTN_CMD_GENERATE_OPTIONS_H

#include "map_form.h"
#include "model/generation.h"
#include "nn/key_value_cache.h"
#include "options.h"

enum { GENERATE_STOPS = 32 };

struct generate_options {
    struct shared_options shared; /* the prompt is its text: -p is an operand like another */
    const char *prompt;           /* -p, or NULL */
    const char *prompts;          /* the file of --prompts, or NULL */
    const char *look;             /* the file of --look, or NULL */
    map_draw *draw;               /* its form */
    const char *system;           /* the text of --system, or NULL */
    bool chat;                    /* prompts are turns of a conversation; -i does so too */
    bool interactive;
    int64_t limit;   /* new tokens, −1 for no limit */
    int64_t context; /* positions, 0 for the model's */
    struct sampler_settings sampler;
    bool seed_is_given;
    const char *stops[GENERATE_STOPS]; /* [stop_count] */
    size_t stop_count;
    enum cache_type cache;
    attn_precision precision;
};

/* Errors are STATUS_USAGE. A seed that is not given is drawn. */
bool generate_options_parse(int argc, char **argv, struct generate_options *options,
                            struct attn_error *error);

/* Whether a text for the model is on the command line or in a file of it. */
bool generate_options_have_text(const struct generate_options *options);

#endif
