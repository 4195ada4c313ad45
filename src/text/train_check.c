#include "text/train_check.h"

#include "text/unicode.h"
#include "text/vocabulary.h"

bool train_check_size(int32_t size, int32_t smallest, struct attn_error *error)
{
    return (size >= smallest && size < VOCABULARY_ID_LIMIT) ||
           attn_error_set(error, "the vocabulary's size is %d, expected %d to %d", (int)size,
                          (int)smallest, VOCABULARY_ID_LIMIT - 1);
}

bool train_check_text(const char *text, size_t size, struct attn_error *error)
{
    size_t invalid = utf8_invalid_offset(text, size);
    return invalid == size ||
           attn_error_set(error, "the text is not valid UTF-8: byte %zu is 0x%02x", invalid,
                          (unsigned char)text[invalid]);
}
