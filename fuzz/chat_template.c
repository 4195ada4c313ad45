/* The source of a chat template, and a conversation by it. */
#include "text/chat_template.h"

#include "fuzz_target.h"

static void converse(const struct chat_template *chat, const struct tokenizer *tokenizer,
                     const char *text, size_t size)
{
    struct attn_error error;
    struct chat_tokens tokens = {0};
    if (chat_template_add(chat, tokenizer, CHAT_USER, text, size, &tokens, &error) &&
        chat_template_ask(chat, tokenizer, &tokens, &error)) {
        chat_template_end(chat, tokenizer, &tokens, &error);
        for (size_t i = 0; i < tokens.count; i++)
            REQUIRE(tokenizer_piece(tokenizer, tokens.ids[i]));
    }
    chat_tokens_release(&tokens);
    chat_template_end_id(chat, tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tokenizer *tokenizer;
    if (!tokenizer)
        tokenizer = fuzz_byte_tokenizer("smollm");
    struct attn_error error;
    struct chat_template *chat;
    if (!chat_template_open(&chat, (const char *)data, size, &error))
        return 0;
    converse(chat, tokenizer, (const char *)data, size);
    chat_template_close(chat);
    return 0;
}
