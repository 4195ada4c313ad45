/* attn tokenize: a text's tokens and where they stand. */
#include <string.h>
#include <utf8proc.h>

#include "options.h"
#include "output.h"
#include "session.h"
#include "verb.h"

enum { OPTION_PAIR = OPTION_OWN, OPTION_IDS, OPTION_PLAIN };

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_FILE,
    OPTION_ENTRY_HELP,
    {"pair", required_argument, NULL, OPTION_PAIR},
    {"ids", no_argument, NULL, OPTION_IDS},
    {"plain", no_argument, NULL, OPTION_PLAIN},
    OPTION_ENTRY_END,
};

struct tokenize_options {
    struct shared_options shared;
    const char *pair;
    bool ids;
    enum special_spelling specials;
};

/* Output is written when this much of it is there. */
#define OUTPUT_CHUNK ((size_t)1 << 20)

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    (void)error;
    struct tokenize_options *options = user;
    switch (option) {
    case OPTION_PAIR:
        options->pair = value;
        break;
    case OPTION_IDS:
        options->ids = true;
        break;
    case OPTION_PLAIN:
        options->specials = SPECIAL_PLAIN;
        break;
    }
    return true;
}

/* A piece as the vocabulary writes it; control characters, which would break the line or steer the
 * terminal, as \u001B. */
static void add_piece(const char *piece, struct attn_buffer *out)
{
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)piece;
    while (*bytes) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t size = utf8proc_iterate(bytes, -1, &codepoint);
        if (size <= 0) {
            attn_buffer_add_text(out, "\xef\xbf\xbd"); /* U+FFFD, the sign of a wrong byte */
            size = 1;
        } else if (utf8proc_category(codepoint) == UTF8PROC_CATEGORY_CC) {
            attn_buffer_format(out, "\\u%04X", (unsigned)codepoint);
        } else {
            attn_buffer_add(out, bytes, (size_t)size);
        }
        bytes += size;
    }
}

static void add_ids(const struct encoding *encoding, struct attn_buffer *out)
{
    for (size_t i = 0; i < encoding->token_count; i++)
        attn_buffer_format(out, "%s%d", i > 0 ? " " : "", (int)encoding->tokens[i].id);
    attn_buffer_add_text(out, "\n");
}

static void add_tokens(const struct tokenizer *tokenizer, const struct encoding *encoding,
                       struct attn_buffer *out)
{
    for (size_t i = 0; i < encoding->token_count; i++) {
        const struct token *token = &encoding->tokens[i];
        const char *piece = tokenizer_piece(tokenizer, token->id);
        attn_buffer_format(out, "%d\t", (int)token->id);
        add_piece(piece ? piece : "", out);
        if (token->word == TOKEN_NO_WORD)
            attn_buffer_add_text(out, "\t-\n");
        else
            attn_buffer_format(out, "\t%zu-%zu\n", token->begin, token->end);
    }
}

static bool tokenize(const struct tokenize_options *options, const struct tokenizer *tokenizer,
                     const struct input *input, struct attn_buffer *out, struct attn_error *error)
{
    for (size_t i = 0; i < input->count; i++) {
        struct tokenizer_input text = {.text = input->texts[i].data,
                                       .text_size = input->texts[i].size,
                                       .pair = options->pair,
                                       .pair_size = options->pair ? strlen(options->pair) : 0,
                                       .specials = options->specials};
        struct encoding encoding;
        if (!tokenizer_encode(tokenizer, &text, &encoding, error))
            return false;
        if (options->ids) {
            add_ids(&encoding, out);
        } else {
            if (i > 0)
                attn_buffer_add_text(out, "\n");
            add_tokens(tokenizer, &encoding, out);
        }
        encoding_release(&encoding);
        if (out->size >= OUTPUT_CHUNK || i + 1 == input->count) {
            if (!output_write(out, error))
                return false;
            attn_buffer_clear(out);
        }
    }
    return true;
}

static bool run(const struct tokenize_options *options, struct attn_error *error)
{
    struct input input = {0};
    struct session session = {0};
    struct attn_buffer out = {0};
    bool done = (!options->pair ||
                 input_check_utf8("--pair", options->pair, strlen(options->pair), error)) &&
                input_read(&options->shared, INPUT_LINES, &input, error) &&
                session_locate(&session, options->shared.model, error) &&
                session_open_tokenizer(&session, error) &&
                tokenize(options, session.tokenizer, &input, &out, error);
    attn_buffer_release(&out);
    session_close(&session);
    input_release(&input);
    return done;
}

enum status verb_tokenize(int argc, char **argv, struct attn_error *error)
{
    struct tokenize_options options = {.specials = SPECIAL_READ};
    if (!options_parse(argc, argv, option_table, take_option, &options, &options.shared, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    if (!input_check(&options.shared, INPUT_LINES, error))
        return STATUS_USAGE;
    return run(&options, error) ? STATUS_SUCCESS : STATUS_FAILURE;
}
