/* How a conversation is written for a model that was taught to answer: the chat templates of
 * Hugging Face, which are programs (Jinja), recognised by what they write and written by
 * ourselves. Known: ChatML (turns between <|im_start|>ROLE and <|im_end|>), with or without a
 * system text of its own where the conversation has none. */
#ifndef ATTN_TEXT_CHAT_TEMPLATE_H
#define ATTN_TEXT_CHAT_TEMPLATE_H

#include "text/tokenizer.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT };

struct chat_template; /* opaque */

/* From the template's source. One that is not known is refused by what it does: "the chat template
 * is not known (it writes "[INST]" where ChatML has "<|im_start|>"): only ChatML is". */
bool chat_template_open(struct chat_template **chat, const char *source, size_t size,
                        struct attn_error *error);
void chat_template_close(struct chat_template *chat); /* NULL is allowed */

struct chat_tokens {
    int32_t *ids;
    size_t count, capacity;
};
void chat_tokens_release(struct chat_tokens *tokens);

/* Appends ids[0..count). */
bool chat_tokens_add(struct chat_tokens *tokens, const int32_t *ids, size_t count,
                     struct attn_error *error);

/* Each of the three that follow leaves `tokens` as they were where it fails.
 *
 * Appends the token ids of a turn. The first turn of a conversation (`tokens` empty) gets the
 * template's own system text in front where it is not a system turn. Markers are special tokens,
 * the text is not trusted: tokenized as SPECIAL_PLAIN. Fails where the vocabulary has no such
 * marker. */
bool chat_template_add(const struct chat_template *chat, const struct tokenizer *tokenizer,
                       enum chat_role role, const char *text, size_t size,
                       struct chat_tokens *tokens, struct attn_error *error);

/* Appends what makes the model answer: the begin of an assistant's turn. */
bool chat_template_ask(const struct chat_template *chat, const struct tokenizer *tokenizer,
                       struct chat_tokens *tokens, struct attn_error *error);

/* Behind an answer, without the end token that the model may have written: what closes the turn. */
bool chat_template_end(const struct chat_template *chat, const struct tokenizer *tokenizer,
                       struct chat_tokens *tokens, struct attn_error *error);

/* The token that ends a turn, −1 where the vocabulary has none. */
int32_t chat_template_end_id(const struct chat_template *chat, const struct tokenizer *tokenizer);

#endif
