/* The field post_processor of tokenizer.json. */
#ifndef ATTN_TEXT_TEMPLATE_JSON_H
#define ATTN_TEXT_TEMPLATE_JSON_H

#include <jansson.h>

#include "text/tokenizer_parts.h"

/* TemplateProcessing, BertProcessing, for byte pairs ByteLevel, or a Sequence of one of them; NULL
 * for none, which adds nothing. The tokenizer's vocabulary must have every token that is named. */
bool template_read_json(struct tokenizer *tokenizer, const json_t *processor,
                        struct attn_error *error);

#endif
