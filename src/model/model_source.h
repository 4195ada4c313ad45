/* Where a model comes from, opened once for all who read it: a Hugging Face directory, or a GGUF
 * file, which holds weights, settings and tokenizer. */
#ifndef ATTN_MODEL_MODEL_SOURCE_H
#define ATTN_MODEL_MODEL_SOURCE_H

#include "format/checkpoint.h"
#include "format/gguf.h"
#include "text/tokenizer.h"

struct model_source;

/* A directory with config.json, a GGUF file, or a directory without config.json that holds exactly
 * one *.gguf (several are refused; with none it stays a directory, whose missing files are told by
 * whoever needs them). A file that is one of several parts of a model is refused. Reads no weights.
 */
bool model_source_open(struct model_source **source, const char *path, struct attn_error *error);
void model_source_close(struct model_source *source); /* NULL is allowed */

const char *model_source_path(const struct model_source *source);

/* The GGUF file, or NULL for a directory. */
const struct gguf *model_source_gguf(const struct model_source *source);

enum model_kind { MODEL_BERT, MODEL_GPT2, MODEL_LLAMA };

/* By model_type of config.json, or general.architecture; others are refused by name. */
bool model_source_kind(const struct model_source *source, enum model_kind *kind,
                       struct attn_error *error);

/* A directory's as tokenizer_open reads it. Of a GGUF file byte-level BPE ("gpt2" as
 * tokenizer.ggml.model) whose pre-tokenizer is known; others, and settings that are not
 * implemented, are refused by name. Errors begin with the source's path. */
bool model_source_tokenizer(const struct model_source *source, struct tokenizer **tokenizer,
                            struct attn_error *error);

/* What a model was taught beside its weights. */
struct model_manners {
    int32_t *end_ids; /* [end_count]: tokens that end a text, none twice */
    size_t end_count;
    char *chat_template; /* source, [chat_template_size], or NULL */
    size_t chat_template_size;
};

/* End tokens: eos_token_id, a number or a list, of generation_config.json, else (where it is
 * absent or null) of config.json; in GGUF eos_token_id, eot_token_id and eom_token_id of
 * tokenizer.ggml. None at all is no error. The template: chat_template.jinja, else chat_template of
 * tokenizer_config.json (of several the one named "default"), or in GGUF tokenizer.chat_template.
 * Release with model_manners_release; on failure nothing is held. */
bool model_source_manners(const struct model_source *source, struct model_manners *manners,
                          struct attn_error *error);
void model_manners_release(struct model_manners *manners);

#endif
