/* The model that a verb works with. A verb opens no more of it than it needs. */
#ifndef ATTN_CMD_SESSION_H
#define ATTN_CMD_SESSION_H

#include "model/embedding.h"
#include "model/locate.h"
#include "model/model_source.h"
#include "model/text_model.h"
#include "text/tokenizer.h"

#include "input.h"

struct session {
    char *path;                  /* a directory or a GGUF file */
    char *name;                  /* for output, UTF-8 */
    struct model_source *source; /* NULL until located */
    struct tokenizer *tokenizer; /* NULL until opened, as are the models and compute */
    struct compute compute;

    /* For verbs that look at a text with any kind of model. */
    struct text_model_settings settings;
    struct text_model *text_model;

    /* For those that need a BERT. */
    struct bert_config config;
    struct bert *bert;
};

/* Start from zeros. Each step needs those before it; session_close undoes whatever was done, also
 * after a step that failed. The first finds the model that is meant, to look at texts or, by the
 * second, to write. */
bool session_locate(struct session *session, const char *model, struct attn_error *error);
bool session_locate_generator(struct session *session, const char *model, struct attn_error *error);

/* Reads the config first, so that a model of another kind is refused as what it is: of any kind, or
 * a BERT's. */
bool session_open_settings(struct session *session, struct attn_error *error);
bool session_open_config(struct session *session, struct attn_error *error);
bool session_open_tokenizer(struct session *session, struct attn_error *error);

/* How the model's directory says that its texts become vectors. */
bool session_read_embedding(const struct session *session, struct embedding_settings *settings,
                            struct attn_error *error);
bool session_open_text_model(struct session *session, int threads, struct attn_error *error);
bool session_open_bert(struct session *session, int threads, struct attn_error *error);
void session_close(struct session *session);

/* Encodes a text that the model shall read: refuses one without a word, naming it as `name`. */
bool session_encode(const struct session *session, const struct text *text, const char *name,
                    const struct text *pair, struct encoding *encoding, struct attn_error *error);

/* Says on standard error, for `verb`, which bytes of a text the vocabulary has no token for. */
void session_tell_dropped(const char *verb, const char *name, const struct encoding *encoding);

#endif
