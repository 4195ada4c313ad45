/* Text for tokenizers that have all bytes: what is encoded comes back. */
#include <string.h>

#include "fuzz_target.h"
#include "text/unicode.h"

static void round_trip(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    struct attn_error error;
    struct encoding encoding;
    const struct tokenizer_input input = {text, size, NULL, 0, SPECIAL_PLAIN};
    bool valid = utf8_invalid_offset(text, size) == size;
    REQUIRE(tokenizer_encode(tokenizer, &input, &encoding, &error) == valid);
    if (!valid)
        return;
    struct attn_buffer decoded = {0};
    for (size_t i = 0; i < encoding.token_count; i++)
        REQUIRE(tokenizer_decode(tokenizer, &encoding.tokens[i].id, 1, &decoded, &error));
    REQUIRE(decoded.size == size && (size == 0 || memcmp(decoded.data, text, size) == 0));
    attn_buffer_release(&decoded);
    encoding_release(&encoding);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const splits[] = {"gpt-2", "smollm"};
    static struct tokenizer *tokenizers[2];
    for (int i = 0; i < 2; i++) {
        if (!tokenizers[i])
            tokenizers[i] = fuzz_byte_tokenizer(splits[i]);
        round_trip(tokenizers[i], (const char *)data, size);
        fuzz_use_tokenizer(tokenizers[i], data, size);
    }
    return 0;
}
