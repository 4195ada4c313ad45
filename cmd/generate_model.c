#include "generate_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool open_chat(struct generator *generator, struct attn_error *error)
{
    const struct model_manners *manners = &generator->manners;
    const char *path = model_source_path(generator->session.source);
    if (!manners->chat_template)
        return attn_error_set(error,
                              "%s: the model has no chat template; it can write, but was "
                              "not taught to answer",
                              path);
    if (chat_template_open(&generator->chat, manners->chat_template, manners->chat_template_size,
                           error))
        return true;
    struct attn_error fault = *error;
    return attn_error_set(error, "%s: %s", path, fault.message);
}

/* The token that ends a turn ends an answer, whether or not the model's files say so. */
static bool add_end_of_turn(struct generator *generator, struct attn_error *error)
{
    struct model_manners *manners = &generator->manners;
    int32_t end = chat_template_end_id(generator->chat, generator->session.tokenizer);
    for (size_t i = 0; i < manners->end_count; i++)
        if (manners->end_ids[i] == end)
            return true;
    if (end < 0)
        return true;
    int32_t *grown = realloc(manners->end_ids, (manners->end_count + 1) * sizeof *grown);
    if (!grown)
        return attn_error_memory(error);
    manners->end_ids = grown;
    manners->end_ids[manners->end_count++] = end;
    return true;
}

bool generator_open(struct generator *generator, const struct generate_options *options,
                    struct attn_error *error)
{
    struct session *session = &generator->session;
    generator->options = options;
    if (!session_locate_generator(session, options->shared.model, error) ||
        !causal_model_read_settings(&generator->settings, session->source, error))
        return false;
    int64_t positions = generator->settings.context;
    generator->positions = options->context > 0 ? options->context : positions;
    if (generator->positions > positions)
        return attn_error_set(error, "-c is %lld, but the model has %lld positions",
                              (long long)generator->positions, (long long)positions);
    return session_open_tokenizer(session, error) &&
           model_source_manners(session->source, &generator->manners, error) &&
           (!options->chat || (open_chat(generator, error) && add_end_of_turn(generator, error)));
}

void generator_close(struct generator *generator)
{
    causal_session_destroy(generator->texts);
    causal_model_close(generator->model);
    chat_template_close(generator->chat);
    model_manners_release(&generator->manners);
    session_close(&generator->session);
    *generator = (struct generator){0};
}

/* Tokens of a text with all that may be written behind it. */
static int64_t capacity(const struct generator *generator, int64_t prompt)
{
    const struct generate_options *options = generator->options;
    bool is_open = options->interactive || options->limit < 0;
    if (is_open || options->limit > generator->positions - prompt)
        return generator->positions;
    return prompt + options->limit;
}

bool generator_start(struct generator *generator, int64_t sequences, int64_t longest,
                     int64_t *granted, struct attn_error *error)
{
    const struct generate_options *options = generator->options;
    struct session *session = &generator->session;
    if (!compute_create(&session->compute, options->shared.threads, error) ||
        !causal_model_open(&generator->model, session->source, error))
        return false;
    struct causal_session_settings settings = {
        .sequences = sequences,
        .capacity = capacity(generator, longest),
        .cache = options->cache,
        .precision = options->precision,
    };
    while (!causal_session_create(&generator->texts, generator->model, &session->compute, &settings,
                                  error)) {
        if (settings.sequences == 1)
            return false;
        settings.sequences /= 2;
    }
    *granted = settings.sequences;
    return true;
}

static bool encode(const struct generator *generator, const struct text *text,
                   enum special_spelling specials, const char *name, struct encoding *encoding,
                   struct attn_error *error)
{
    struct tokenizer_input input = {
        .text = text->data, .text_size = text->size, .specials = specials};
    if (!tokenizer_encode(generator->session.tokenizer, &input, encoding, error))
        return false;
    session_tell_dropped("generate", name, encoding);
    return true;
}

/* A tokenizer may have more tokens than the model has words. */
static bool check_ids(const struct generator *generator, const char *name,
                      const struct chat_tokens *tokens, size_t first, struct attn_error *error)
{
    const int64_t vocabulary = generator->settings.vocabulary;
    for (size_t i = first; i < tokens->count; i++)
        if (tokens->ids[i] >= vocabulary)
            return attn_error_set(error,
                                  "%s has token %ld, but the model's vocabulary ends at %lld", name,
                                  (long)tokens->ids[i], (long long)vocabulary - 1);
    return true;
}

/* The tokens of a text that is no turn: special spellings in it are read, so that a model's own
 * form can be written by hand. */
static bool encode_plain(const struct generator *generator, const struct text *text,
                         const char *name, struct chat_tokens *tokens, struct attn_error *error)
{
    struct encoding encoding;
    if (!encode(generator, text, SPECIAL_READ, name, &encoding, error))
        return false;
    bool done = true;
    for (size_t i = 0; done && i < encoding.token_count; i++)
        done = chat_tokens_add(tokens, &encoding.tokens[i].id, 1, error);
    encoding_release(&encoding);
    return done && check_ids(generator, name, tokens, 0, error);
}

bool generator_encode_turn(const struct generator *generator, const struct text *text,
                           const char *name, struct chat_tokens *tokens, struct attn_error *error)
{
    const struct tokenizer *tokenizer = generator->session.tokenizer;
    const char *system = generator->options->system;
    const size_t first = tokens->count;
    struct encoding encoding;
    /* Only to see what the vocabulary has not. */
    if (!encode(generator, text, SPECIAL_PLAIN, name, &encoding, error))
        return false;
    encoding_release(&encoding);
    if (system && tokens->count == 0 &&
        !chat_template_add(generator->chat, tokenizer, CHAT_SYSTEM, system, strlen(system), tokens,
                           error))
        return false;
    return chat_template_add(generator->chat, tokenizer, CHAT_USER, text->data, text->size, tokens,
                             error) &&
           chat_template_ask(generator->chat, tokenizer, tokens, error) &&
           check_ids(generator, name, tokens, first, error);
}

bool generator_encode(const struct generator *generator, const struct text *text, const char *name,
                      struct chat_tokens *tokens, struct attn_error *error)
{
    bool encoded = generator->chat ? generator_encode_turn(generator, text, name, tokens, error)
                                   : encode_plain(generator, text, name, tokens, error);
    if (!encoded)
        return false;
    if (tokens->count == 0 || (generator->chat && text->size == 0))
        return attn_error_set(error, "%s has no token; give the model something to go on from",
                              name);
    if ((int64_t)tokens->count > generator->positions)
        return attn_error_set(error, "%s has %zu tokens, %s %lld positions: shorten it", name,
                              tokens->count,
                              generator->options->context > 0 ? "-c gives" : "the model has",
                              (long long)generator->positions);
    return true;
}

struct generation_settings generator_settings(const struct generator *generator, int64_t first)
{
    const struct generate_options *options = generator->options;
    struct generation_settings settings = {
        .sampler = options->sampler,
        .limit = options->limit,
        .stops = options->stops,
        .stop_count = options->stop_count,
        .end_ids = generator->manners.end_ids,
        .end_count = generator->manners.end_count,
    };
    settings.sampler.seed += (uint64_t)first;
    settings.sampler.log_probabilities = options->shared.json || options->prompts;
    return settings;
}

void generator_tell_seed(const struct generator *generator)
{
    const struct generate_options *options = generator->options;
    if (!options->seed_is_given && options->sampler.temperature > 0)
        fprintf(stderr, "attn generate: seed %" PRIu64 "\n", options->sampler.seed);
}
