/* The model that a verb works with. A verb opens no more of it than it needs. */
#ifndef ATTN_CMD_SESSION_H
#define ATTN_CMD_SESSION_H

#include "model/embedding.h"
#include "text/tokenizer.h"

#include "input.h"

struct session {
    char *directory;
    char *name;                  /* for output, UTF-8 */
    struct tokenizer *tokenizer; /* NULL until opened, as are bert and compute */
    struct bert_config config;
    struct bert *bert;
    struct compute compute;
};

/* Start from zeros. Each step needs those before it; session_close undoes whatever was done, also
 * after a step that failed. */
bool session_locate(struct session *session, const char *model, struct attn_error *error);

/* Reads the config first, so that a model of another kind is refused as what it is. */
bool session_open_config(struct session *session, struct attn_error *error);
bool session_open_tokenizer(struct session *session, struct attn_error *error);

/* How the model's directory says that its texts become vectors. */
bool session_read_embedding(const struct session *session, struct embedding_settings *settings,
                            struct attn_error *error);
bool session_open_bert(struct session *session, int threads, struct attn_error *error);
void session_close(struct session *session);

/* Encodes a text that the model shall read: refuses one without a word, naming it as `name`. */
bool session_encode(const struct session *session, const struct text *text, const char *name,
                    const struct text *pair, struct encoding *encoding, struct attn_error *error);

#endif
