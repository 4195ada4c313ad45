#include "text/word_piece.h"

#include <stdlib.h>

void word_piece_release(struct word_piece *model)
{
    vocabulary_release(&model->vocabulary);
    free(model->prefix);
    model->prefix = NULL;
}

bool word_piece_takes(const struct word_piece *model, const char *word, size_t size)
{
    size_t characters = 0;
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)word[i] & 0xC0) != 0x80)
            characters++;
    return characters <= model->longest_word;
}

int32_t word_piece_next(const struct word_piece *model, const char *word, size_t size, size_t begin,
                        size_t *end)
{
    size_t length = 0;
    int32_t id =
        vocabulary_longest(&model->vocabulary, begin ? model->prefix : "",
                           begin ? model->prefix_length : 0, word + begin, size - begin, &length);
    *end = begin + length;
    return id;
}
