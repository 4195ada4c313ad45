#include "model/generation.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "model/written_text.h"

/* A text that is being written. */
struct writer {
    struct sampler *sampler;
    int32_t *ids; /* [count]: the prompt, and what was written */
    int64_t count, capacity;
    int64_t read; /* of the prompt, before the first read */
    int64_t written;
    struct written_text text;
    bool ended;
};

struct generation {
    struct causal_session *session;
    const struct tokenizer *tokenizer;
    const struct generation_settings *settings;
    const struct generation_listener *listener;
    int64_t vocabulary;
    int64_t context;        /* tokens that a sequence can hold */
    struct writer *writers; /* [prompt_count] */
    int64_t prompt_count;
    float *logits;            /* [prompt_count][vocabulary]: of those that are read */
    int64_t *slots, *starts;  /* [prompt_count], [prompt_count + 1] */
    int32_t *ids;             /* tokens of a read */
    struct attn_buffer bytes; /* of a token */
};

static bool check_prompt(const struct generation *generation, int64_t sequence,
                         const struct prompt *prompt, struct attn_error *error)
{
    const int64_t held = causal_session_length(generation->session, sequence);
    const long long tokens = prompt->count, context = generation->context;
    if (tokens < 1)
        return attn_error_set(error, "the prompt has no tokens, at least one is needed");
    if (prompt->read < 0 || prompt->read >= tokens || prompt->read > held)
        return attn_error_set(error,
                              "%lld of the prompt's %lld tokens are said to be read, the sequence "
                              "holds %lld: at least one is to be read",
                              (long long)prompt->read, tokens, (long long)held);
    if (tokens - prompt->read <= context - held)
        return true;
    if (held > prompt->read)
        return attn_error_set(
            error, "the prompt has %lld tokens, the context of %lld holds %lld before it", tokens,
            context, (long long)(held - prompt->read));
    const struct causal_model *model = causal_session_get_model(generation->session);
    return attn_error_set(error,
                          context == causal_model_get_settings(model)->context
                              ? "the prompt has %lld tokens, the model has %lld positions"
                              : "the prompt has %lld tokens, the context is %lld",
                          tokens, context);
}

static bool check_stops(const struct generation *generation, struct attn_error *error)
{
    const struct generation_settings *settings = generation->settings;
    if (settings->stop_count > 0 && !generation->tokenizer)
        return attn_error_set(error, "stop strings need a tokenizer");
    for (size_t n = 0; n < settings->stop_count; n++)
        if (settings->stops[n][0] == '\0')
            return attn_error_set(error, "a stop string is empty");
    return true;
}

static bool check(const struct generation *generation, const struct prompt *prompts,
                  struct attn_error *error)
{
    const long long sequences = causal_session_get_settings(generation->session)->sequences;
    const long long count = generation->prompt_count;
    if (count < 1 || count > sequences)
        return attn_error_set(error, "%lld prompts are given, the session has %lld sequences",
                              count, sequences);
    if (count > 1 && generation->listener->observer)
        return attn_error_set(error, "%lld prompts are given, an observer sees one alone", count);
    if (generation->settings->limit < -1)
        return attn_error_set(error, "%lld new tokens are asked for, expected -1 (all) or more",
                              (long long)generation->settings->limit);
    for (int64_t n = 0; n < count; n++)
        if (!check_prompt(generation, n, &prompts[n], error))
            return false;
    return check_stops(generation, error);
}

static bool start_writer(struct writer *writer, const struct generation *generation, int64_t n,
                         const struct prompt *prompt, struct attn_error *error)
{
    struct sampler_settings sampler = generation->settings->sampler;
    sampler.seed += (uint64_t)n;
    writer->ids = malloc((size_t)prompt->count * sizeof *writer->ids);
    if (!writer->ids)
        return attn_error_memory(error);
    memcpy(writer->ids, prompt->ids, (size_t)prompt->count * sizeof *writer->ids);
    writer->count = writer->capacity = prompt->count;
    writer->read = prompt->read;
    return sampler_create(&writer->sampler, &sampler, generation->vocabulary, error);
}

/* Tokens of the largest read. */
static bool count_tokens(const struct prompt *prompts, int64_t count, size_t *tokens,
                         struct attn_error *error)
{
    int64_t sum = 0;
    for (int64_t n = 0; n < count; n++)
        if (!attn_checked_add(sum, prompts[n].count - prompts[n].read, &sum))
            return attn_error_memory(error);
    *tokens = (size_t)sum;
    return true;
}

static bool start(struct generation *generation, const struct prompt *prompts,
                  struct attn_error *error)
{
    const size_t count = (size_t)generation->prompt_count;
    size_t tokens = 0, logits;
    if (!count_tokens(prompts, generation->prompt_count, &tokens, error))
        return false;
    if (!attn_checked_size_multiply(count, (size_t)generation->vocabulary, &logits))
        return attn_error_memory(error);
    generation->writers = calloc(count, sizeof *generation->writers);
    generation->logits = calloc(logits, sizeof *generation->logits);
    generation->slots = calloc(count, sizeof *generation->slots);
    generation->starts = calloc(count + 1, sizeof *generation->starts);
    generation->ids = calloc(tokens, sizeof *generation->ids);
    if (!generation->writers || !generation->logits || !generation->slots || !generation->starts ||
        !generation->ids)
        return attn_error_memory(error);
    for (size_t n = 0; n < count; n++)
        if (!start_writer(&generation->writers[n], generation, (int64_t)n, &prompts[n], error))
            return false;
    return true;
}

static void finish(struct generation *generation)
{
    for (int64_t n = 0; generation->writers && n < generation->prompt_count; n++) {
        struct writer *writer = &generation->writers[n];
        sampler_destroy(writer->sampler);
        written_text_release(&writer->text);
        free(writer->ids);
    }
    attn_buffer_release(&generation->bytes);
    free(generation->writers);
    free(generation->logits);
    free(generation->slots);
    free(generation->starts);
    free(generation->ids);
}

static bool end(struct generation *generation, int64_t n, enum generation_end how,
                struct attn_error *error)
{
    struct writer *writer = &generation->writers[n];
    writer->ended = true;
    if (!written_text_end(&writer->text))
        return attn_error_memory(error);
    if (generation->listener->end)
        generation->listener->end(generation->listener->user, n, how,
                                  written_text_shown(&writer->text), writer->text.shown);
    return true;
}

/* All chunks of one prompt but the last: an observer's read must fit one, and a long prompt takes
 * so long that the listener may want to end it. */
static bool read_begin(struct generation *generation, struct attn_error *error)
{
    const struct generation_listener *listener = generation->listener;
    struct writer *writer = &generation->writers[0];
    const int64_t chunk = causal_session_get_settings(generation->session)->chunk;
    while (writer->count - writer->read > chunk) {
        const int64_t starts[] = {0, chunk};
        const struct causal_input input = {.sequences = 1,
                                           .starts = starts,
                                           .ids = writer->ids + writer->read,
                                           .want = CAUSAL_NONE};
        if (!causal_session_read(generation->session, &input, listener->observer, NULL, error))
            return false;
        writer->read += chunk;
        if (listener->reading && !listener->reading(listener->user, writer->read, writer->count))
            return end(generation, 0, GENERATION_REFUSED, error);
    }
    return true;
}

/* Reads what the writers have not read yet: `fresh` says whether that is the prompt, or a token. */
static bool read_next(struct generation *generation, bool fresh, struct attn_error *error)
{
    int64_t sequences = 0, tokens = 0;
    for (int64_t n = 0; n < generation->prompt_count; n++) {
        const struct writer *writer = &generation->writers[n];
        const int64_t begin = fresh ? writer->read : writer->count - 1;
        if (writer->ended)
            continue;
        const int64_t count = writer->count - begin;
        memcpy(generation->ids + tokens, writer->ids + begin, (size_t)count * sizeof *writer->ids);
        generation->slots[sequences++] = n;
        tokens += count;
        generation->starts[sequences] = tokens;
    }
    const struct causal_input input = {.sequences = sequences,
                                       .slots = generation->slots,
                                       .starts = generation->starts,
                                       .ids = generation->ids,
                                       .want = CAUSAL_LAST};
    return causal_session_read(generation->session, &input, generation->listener->observer,
                               generation->logits, error);
}

static bool is_end(const struct generation_settings *settings, int32_t id)
{
    for (size_t n = 0; n < settings->end_count; n++)
        if (settings->end_ids[n] == id)
            return true;
    return false;
}

static bool append(struct writer *writer, int32_t id, struct attn_error *error)
{
    if (writer->count == writer->capacity) {
        const int64_t capacity = writer->capacity + writer->capacity / 2 + 64;
        int32_t *larger = realloc(writer->ids, (size_t)capacity * sizeof *larger);
        if (!larger)
            return attn_error_memory(error);
        writer->ids = larger;
        writer->capacity = capacity;
    }
    writer->ids[writer->count++] = id;
    writer->written++;
    return true;
}

/* A model may have more ids than its vocabulary has pieces: those have no text. */
static bool take_text(struct generation *generation, struct writer *writer, int32_t id,
                      struct attn_error *error)
{
    const struct generation_settings *settings = generation->settings;
    const struct stop_strings stops = {settings->stops, settings->stop_count};
    attn_buffer_clear(&generation->bytes);
    if (generation->tokenizer && tokenizer_piece(generation->tokenizer, id) &&
        !tokenizer_decode(generation->tokenizer, &id, 1, &generation->bytes, error))
        return false;
    if (generation->bytes.failed ||
        !written_text_add(&writer->text, generation->bytes.data, generation->bytes.size, &stops))
        return attn_error_memory(error);
    return true;
}

/* Whether the listener wants more. */
static bool tell(const struct generation *generation, int64_t n, const struct drawn_token *token)
{
    const struct written_text *text = &generation->writers[n].text;
    const struct written_token written = {n, token->id, token->log_probability,
                                          written_text_shown(text), text->shown};
    return !generation->listener->token ||
           generation->listener->token(generation->listener->user, &written);
}

/* The next token of a sequence from its logits. */
static bool write_next(struct generation *generation, int64_t n, const float *logits,
                       struct attn_error *error)
{
    struct writer *writer = &generation->writers[n];
    struct drawn_token token;
    if (!sampler_draw(writer->sampler, logits, writer->ids, writer->count, &token, error))
        return false;
    if (is_end(generation->settings, token.id))
        return end(generation, n, GENERATION_END_TOKEN, error);
    if (!append(writer, token.id, error) || !take_text(generation, writer, token.id, error))
        return false;
    const bool wanted = tell(generation, n, &token);
    if (writer->text.stopped)
        return end(generation, n, GENERATION_STOP, error);
    if (!wanted)
        return end(generation, n, GENERATION_REFUSED, error);
    if (writer->written == generation->settings->limit)
        return end(generation, n, GENERATION_LIMIT, error);
    if (causal_session_length(generation->session, n) == generation->context)
        return end(generation, n, GENERATION_CONTEXT, error);
    return true;
}

/* A token for each sequence that was read; how many go on goes to *left. */
static bool write_all(struct generation *generation, int64_t *left, struct attn_error *error)
{
    const float *logits = generation->logits;
    *left = 0;
    for (int64_t n = 0; n < generation->prompt_count; n++) {
        if (generation->writers[n].ended)
            continue;
        if (!write_next(generation, n, logits, error))
            return false;
        logits += generation->vocabulary;
        *left += !generation->writers[n].ended;
    }
    return true;
}

static bool run(struct generation *generation, struct attn_error *error)
{
    int64_t left = generation->prompt_count;
    if (generation->settings->limit == 0) {
        for (int64_t n = 0; n < generation->prompt_count; n++)
            if (!end(generation, n, GENERATION_LIMIT, error))
                return false;
        return true;
    }
    if (generation->prompt_count == 1 && !read_begin(generation, error))
        return false;
    if (generation->prompt_count == 1 && generation->writers[0].ended)
        return true;
    for (bool fresh = true; left > 0; fresh = false)
        if (!read_next(generation, fresh, error) || !write_all(generation, &left, error))
            return false;
    return true;
}

bool generate(struct causal_session *session, const struct tokenizer *tokenizer,
              const struct generation_settings *settings, const struct prompt *prompts,
              int64_t prompt_count, const struct generation_listener *listener,
              struct attn_error *error)
{
    struct generation generation = {
        .session = session,
        .tokenizer = tokenizer,
        .settings = settings,
        .listener = listener,
        .vocabulary = causal_model_get_settings(causal_session_get_model(session))->vocabulary,
        .context = causal_session_get_settings(session)->capacity,
        .prompt_count = prompt_count,
    };
    bool done = check(&generation, prompts, error) && start(&generation, prompts, error) &&
                run(&generation, error);
    finish(&generation);
    return done;
}
