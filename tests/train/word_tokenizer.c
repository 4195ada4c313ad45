#include "word_tokenizer.h"

#include "cmocka_test.h"
#include "scratch_folder.h"

struct tokenizer *word_tokenizer_open(const char *folder)
{
    struct attn_buffer words = {0};
    struct tokenizer *tokenizer;
    struct attn_error error;
    attn_buffer_add_text(&words, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int i = 0; i < WORD_COUNT; i++)
        attn_buffer_format(&words, "w%d\n", i);
    scratch_write(folder, "vocab.txt", words.data, words.size);
    attn_buffer_release(&words);
    if (!tokenizer_open(&tokenizer, folder, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}
