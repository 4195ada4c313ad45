#include "look_written.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/generation.h"
#include "text/encoding_extend.h"

/* The tokens as they come. */
struct written_ids {
    int32_t *ids; /* [limit] */
    size_t count;
};

static bool take_token(void *user, const struct written_token *token)
{
    struct written_ids *written = user;
    written->ids[written->count++] = token->id;
    return true;
}

/* Keys and values as they are: what is looked at afterwards is computed alike. */
static bool write_on(const struct session *session, const struct model_manners *manners,
                     const struct prompt *prompt, int64_t limit, struct written_ids *written,
                     struct attn_error *error)
{
    const struct causal_session_settings room = {
        .sequences = 1,
        .capacity = prompt->count + limit,
        .cache = CACHE_F32,
        .precision = ATTN_PRECISION_EXACT,
    };
    struct generation_settings settings = {
        .limit = limit, .end_ids = manners->end_ids, .end_count = manners->end_count};
    sampler_settings_init(&settings.sampler);
    settings.sampler.temperature = 0;
    settings.sampler.log_probabilities = false;
    const struct generation_listener listener = {.token = take_token, .user = written};
    struct causal_session *text;
    if (!causal_session_create(&text, text_model_causal(session->text_model), &session->compute,
                               &room, error))
        return false;
    const bool done = generate(text, NULL, &settings, prompt, 1, &listener, error);
    causal_session_destroy(text);
    return done;
}

static bool write_ids(const struct session *session, int64_t limit, const struct encoding *encoding,
                      struct written_ids *written, struct attn_error *error)
{
    struct model_manners manners;
    if (!model_source_manners(session->source, &manners, error))
        return false;
    const size_t tokens = encoding->token_count;
    int32_t *ids = calloc(tokens + 1, sizeof *ids);
    written->ids = calloc((size_t)limit, sizeof *written->ids);
    bool done = (ids && written->ids) || attn_error_memory(error);
    for (size_t t = 0; done && t < tokens; t++)
        ids[t] = encoding->tokens[t].id;
    const struct prompt prompt = {.ids = ids, .count = (int64_t)tokens};
    done = done && write_on(session, &manners, &prompt, limit, written, error);
    free(ids);
    model_manners_release(&manners);
    return done;
}

bool look_written_extend(const struct session *session, int64_t limit, const struct text *text,
                         struct encoding *encoding, struct attn_buffer *joined,
                         struct attn_error *error)
{
    const int64_t room = session->settings.positions - (int64_t)encoding->token_count;
    if (session->settings.kind == MODEL_BERT)
        return attn_error_set(error,
                              "%s is a BERT, which writes no text: --generate needs a GPT-2 "
                              "or a Llama",
                              session->name);
    if (room < 1)
        return attn_error_set(error,
                              "the text has %zu tokens, the model has %lld positions: there is no "
                              "room to write; shorten it",
                              encoding->token_count, (long long)session->settings.positions);
    struct written_ids written = {0};
    attn_buffer_add(joined, text->data, text->size);
    bool done = !joined->failed || attn_error_memory(error);
    done = done && write_ids(session, limit < room ? limit : room, encoding, &written, error) &&
           encoding_extend(encoding, session->tokenizer, written.ids, written.count, joined, error);
    if (done && written.count == 0)
        fprintf(stderr, "attn look: the model ended the text at once: nothing was written\n");
    free(written.ids);
    return done;
}
