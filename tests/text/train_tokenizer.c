/* Trains a tokenizer on the text of a file and prints its tokenizer.json: the side of attn for
 * scripts/compare_tokenizer_training.py.
 *
 *     train_tokenizer bytes|words SIZE FILE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/tokenizer_train.h"

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    struct attn_error error;
    struct attn_buffer json = {0};
    char *text = NULL;
    size_t size;
    int32_t entries = (int32_t)strtol(arguments[2], NULL, 10);
    bool words = strcmp(arguments[1], "words") == 0;
    bool done = attn_file_read(arguments[3], SIZE_MAX / 2, &text, &size, &error) &&
                (words ? word_piece_train : byte_pair_train)(text, size, entries, &json, &error);
    if (done)
        fwrite(json.data, 1, json.size, stdout);
    else
        fprintf(stderr, "%s\n", error.message);
    attn_buffer_release(&json);
    free(text);
    return done ? 0 : 1;
}
