/* A vocab.json with merges.txt and tokenizer_config.json, and text for it. */
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"vocab.json", "merges.txt", "tokenizer_config.json"};
    fuzz_write_parts(names, sizeof names / sizeof *names, data, size);
    struct attn_error error;
    struct tokenizer *tokenizer;
    if (!tokenizer_open(&tokenizer, fuzz_folder(), &error))
        return 0;
    fuzz_use_tokenizer(tokenizer, data, size);
    tokenizer_close(tokenizer);
    return 0;
}
