#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool locate(struct session *session, enum model_purpose purpose, const char *model,
                   struct attn_error *error)
{
    return model_locate(purpose, model, &session->path, &session->name, error) &&
           input_check_utf8("the model's name", session->name, strlen(session->name), error) &&
           model_source_open(&session->source, session->path, error);
}

bool session_locate(struct session *session, const char *model, struct attn_error *error)
{
    return locate(session, MODEL_FOR_LOOKING, model, error);
}

bool session_locate_generator(struct session *session, const char *model, struct attn_error *error)
{
    return locate(session, MODEL_FOR_WRITING, model, error);
}

bool session_open_settings(struct session *session, struct attn_error *error)
{
    return text_model_read_settings(&session->settings, session->source, error);
}

bool session_open_config(struct session *session, struct attn_error *error)
{
    if (model_source_gguf(session->source))
        return attn_error_set(error,
                              "%s is a GGUF file, which holds no BERT; a folder with "
                              "config.json is needed",
                              model_source_path(session->source));
    return bert_config_read(&session->config, session->path, error);
}

bool session_open_tokenizer(struct session *session, struct attn_error *error)
{
    return model_source_tokenizer(session->source, &session->tokenizer, error);
}

/* Readers of the model's small files name the file; which model's it is, is known here. */
bool session_read_embedding(const struct session *session, struct embedding_settings *settings,
                            struct attn_error *error)
{
    if (embedding_settings_read(settings, session->path, error))
        return true;
    struct attn_error fault = *error;
    if (strncmp(fault.message, session->path, strlen(session->path)) != 0)
        attn_error_set(error, "%s: %s", session->path, fault.message);
    return false;
}

bool session_open_text_model(struct session *session, int threads, struct attn_error *error)
{
    return compute_create(&session->compute, threads, error) &&
           text_model_open(&session->text_model, session->source, error);
}

bool session_open_bert(struct session *session, int threads, struct attn_error *error)
{
    return compute_create(&session->compute, threads, error) &&
           bert_open(&session->bert, session->path, error);
}

void session_close(struct session *session)
{
    text_model_close(session->text_model);
    bert_close(session->bert);
    if (session->compute.attention)
        compute_destroy(&session->compute);
    tokenizer_close(session->tokenizer);
    model_source_close(session->source);
    free(session->path);
    free(session->name);
    *session = (struct session){0};
}

bool session_encode(const struct session *session, const struct text *text, const char *name,
                    const struct text *pair, struct encoding *encoding, struct attn_error *error)
{
    struct tokenizer_input input = {.text = text->data,
                                    .text_size = text->size,
                                    .pair = pair ? pair->data : NULL,
                                    .pair_size = pair ? pair->size : 0,
                                    .specials = SPECIAL_READ};
    if (!tokenizer_encode(session->tokenizer, &input, encoding, error))
        return false;

    size_t words[2] = {0, 0};
    for (size_t i = 0; i < encoding->word_count; i++)
        words[encoding->words[i].text == 1]++;
    if (words[0] == 0)
        attn_error_set(error, "%s is empty; a text needs at least one word", name);
    else if (pair && words[1] == 0)
        attn_error_set(error, "the pair is empty; a text needs at least one word");
    else
        return true;
    encoding_release(encoding);
    return false;
}

void session_tell_dropped(const char *verb, const char *name, const struct encoding *encoding)
{
    if (encoding->dropped_count == 0)
        return;
    fprintf(stderr, "attn %s: %s: byte 0x%02x has no token and was left out", verb, name,
            encoding->first_dropped);
    if (encoding->dropped_count > 1)
        fprintf(stderr, ", and so were %zu more", encoding->dropped_count - 1);
    fputs("\n", stderr);
}
