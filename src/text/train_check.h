/* What all trainers ask of their arguments. */
#ifndef ATTN_TEXT_TRAIN_CHECK_H
#define ATTN_TEXT_TRAIN_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Entries of a vocabulary: at least `smallest`, below VOCABULARY_ID_LIMIT. */
bool train_check_size(int32_t size, int32_t smallest, struct attn_error *error);

/* Valid UTF-8; the error names the byte. */
bool train_check_text(const char *text, size_t size, struct attn_error *error);

#endif
