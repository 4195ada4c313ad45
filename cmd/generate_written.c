#include "generate_written.h"

#include <inttypes.h>
#include <stdlib.h>

#include "output.h"

void written_release(struct written *written)
{
    free(written->ids);
    free(written->log_probabilities);
    attn_buffer_release(&written->text);
    *written = (struct written){0};
}

static bool reserve_token(struct written *written)
{
    if (written->count < written->capacity)
        return true;
    size_t capacity = written->capacity > 0 ? 2 * written->capacity : 64;
    int32_t *ids = realloc(written->ids, capacity * sizeof *ids);
    if (!ids)
        return false;
    written->ids = ids;
    float *log_probabilities =
        realloc(written->log_probabilities, capacity * sizeof *log_probabilities);
    if (!log_probabilities)
        return false;
    written->log_probabilities = log_probabilities;
    written->capacity = capacity;
    return true;
}

static bool add_text(struct writing *writing, int64_t sequence, const char *text, size_t size)
{
    struct attn_buffer *whole = &writing->texts[sequence].text;
    size_t before = whole->size;
    attn_buffer_add(whole, text, size);
    if (whole->failed)
        writing->has_failed = !attn_error_memory(&writing->error);
    else if (writing->shown && size > 0) {
        const struct attn_buffer news = {.data = whole->data + before, .size = size};
        writing->has_failed = !output_write(&news, &writing->error);
    }
    return !writing->has_failed;
}

static bool is_interrupted(const struct writing *writing)
{
    return writing->is_interrupted && *writing->is_interrupted;
}

/* A long prompt. */
static bool take_reading(void *user, int64_t tokens, int64_t all)
{
    struct writing *writing = user;
    progress_show("generate", (size_t)tokens, (size_t)all, "tokens read");
    writing->shows_progress = true;
    return !is_interrupted(writing);
}

static void clear_progress(struct writing *writing)
{
    if (writing->shows_progress)
        progress_end();
    writing->shows_progress = false;
}

static bool take_token(void *user, const struct written_token *token)
{
    struct writing *writing = user;
    struct written *written = &writing->texts[token->sequence];
    clear_progress(writing);
    if (writing->has_failed)
        return false;
    if (!reserve_token(written)) {
        writing->has_failed = !attn_error_memory(&writing->error);
        return false;
    }
    written->ids[written->count] = token->id;
    written->log_probabilities[written->count++] = (float)token->log_probability;
    return add_text(writing, token->sequence, token->text, token->text_size) &&
           !is_interrupted(writing);
}

static void take_end(void *user, int64_t sequence, enum generation_end end, const char *text,
                     size_t size)
{
    struct writing *writing = user;
    clear_progress(writing);
    writing->texts[sequence].end = end;
    if (!writing->has_failed)
        (void)add_text(writing, sequence, text, size);
}

bool writing_run(struct writing *writing, const struct generator *generator,
                 const struct generation_settings *settings, const struct prompt *prompts,
                 int64_t prompt_count, const struct model_observer *observer,
                 struct attn_error *error)
{
    const struct generation_listener listener = {.token = take_token,
                                                 .end = take_end,
                                                 .reading = take_reading,
                                                 .user = writing,
                                                 .observer = observer};
    const bool done = generate(generator->texts, generator->session.tokenizer, settings, prompts,
                               prompt_count, &listener, error);
    clear_progress(writing);
    if (!done)
        return false;
    if (writing->has_failed)
        *error = writing->error;
    return !writing->has_failed;
}

static const char *end_name(enum generation_end end)
{
    switch (end) {
    case GENERATION_END_TOKEN:
        return "end";
    case GENERATION_LIMIT:
        return "limit";
    case GENERATION_STOP:
        return "stop";
    case GENERATION_CONTEXT:
        return "context";
    case GENERATION_REFUSED:
        break;
    }
    return "interrupted";
}

void written_add_json(const struct written *written, const struct text *prompt,
                      size_t prompt_tokens, const struct sampler_settings *sampler,
                      struct attn_buffer *out)
{
    attn_buffer_add_text(out, "{\"prompt\": ");
    attn_buffer_add_json_string(out, prompt->data, prompt->size);
    attn_buffer_add_text(out, ", \"text\": ");
    attn_buffer_add_json_string(out, written->text.data, written->text.size);
    attn_buffer_format(out, ", \"prompt_tokens\": %zu, \"tokens\": [", prompt_tokens);
    for (size_t i = 0; i < written->count; i++)
        attn_buffer_format(out, "%s%d", i > 0 ? ", " : "", (int)written->ids[i]);
    attn_buffer_add_text(out, "], \"logprobs\": [");
    for (size_t i = 0; i < written->count; i++) {
        if (i > 0)
            attn_buffer_add_text(out, ", ");
        attn_buffer_add_json_float(out, written->log_probabilities[i]);
    }
    attn_buffer_format(out, "], \"end\": \"%s\", \"seed\": ", end_name(written->end));
    if (sampler->temperature > 0)
        attn_buffer_format(out, "%" PRIu64 "}\n", sampler->seed);
    else
        attn_buffer_add_text(out, "null}\n");
}
