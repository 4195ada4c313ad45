#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "model/locate.h"

bool session_locate(struct session *session, const char *model, struct attn_error *error)
{
    return model_locate(model, &session->directory, &session->name, error) &&
           input_check_utf8("the model's name", session->name, strlen(session->name), error);
}

bool session_open_settings(struct session *session, struct attn_error *error)
{
    return text_model_read_settings(&session->settings, session->directory, error);
}

bool session_open_config(struct session *session, struct attn_error *error)
{
    return bert_config_read(&session->config, session->directory, error);
}

/* Readers of the model's small files name the file; which model's it is, is known here. */
static bool name_directory(const struct session *session, struct attn_error *error)
{
    struct attn_error fault = *error;
    if (strncmp(fault.message, session->directory, strlen(session->directory)) != 0)
        attn_error_set(error, "%s: %s", session->directory, fault.message);
    return false;
}

bool session_open_tokenizer(struct session *session, struct attn_error *error)
{
    return tokenizer_open(&session->tokenizer, session->directory, error) ||
           name_directory(session, error);
}

bool session_read_embedding(const struct session *session, struct embedding_settings *settings,
                            struct attn_error *error)
{
    return embedding_settings_read(settings, session->directory, error) ||
           name_directory(session, error);
}

bool session_open_text_model(struct session *session, int threads, struct attn_error *error)
{
    return compute_create(&session->compute, threads, error) &&
           text_model_open(&session->text_model, session->directory, error);
}

bool session_open_bert(struct session *session, int threads, struct attn_error *error)
{
    return compute_create(&session->compute, threads, error) &&
           bert_open(&session->bert, session->directory, error);
}

void session_close(struct session *session)
{
    text_model_close(session->text_model);
    bert_close(session->bert);
    if (session->compute.attention)
        compute_destroy(&session->compute);
    tokenizer_close(session->tokenizer);
    free(session->directory);
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
        attn_error_set(error, "--pair is empty; a text needs at least one word");
    else
        return true;
    encoding_release(encoding);
    return false;
}
