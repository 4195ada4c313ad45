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

/* Bytes for eyes: what would break the line or steer the terminal as \u001B, what is no whole
 * character as \xC3, and what ends or changes a text between quotes behind a backslash. */
static void add_readable(const char *text, size_t size, bool is_quoted, struct attn_buffer *out)
{
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text;
    for (size_t at = 0; at < size;) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t length =
            utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(size - at), &codepoint);
        if (length <= 0) {
            attn_buffer_format(out, "\\x%02X", (unsigned)bytes[at]);
            length = 1;
        } else if (utf8proc_category(codepoint) == UTF8PROC_CATEGORY_CC) {
            attn_buffer_format(out, "\\u%04X", (unsigned)codepoint);
        } else {
            if (is_quoted && (codepoint == '"' || codepoint == '\\'))
                attn_buffer_add_text(out, "\\");
            attn_buffer_add(out, bytes + at, (size_t)length);
        }
        at += (size_t)length;
    }
}

static void add_ids(const struct encoding *encoding, struct attn_buffer *out)
{
    for (size_t i = 0; i < encoding->token_count; i++)
        attn_buffer_format(out, "%s%d", i > 0 ? " " : "", (int)encoding->tokens[i].id);
    attn_buffer_add_text(out, "\n");
}

/* The vocabulary of byte pairs spells bytes by letters that stand for them; this is what it says. A
 * special token says nothing. */
static bool add_said(const struct tokenizer *tokenizer, int32_t id, struct attn_buffer *said,
                     struct attn_buffer *out, struct attn_error *error)
{
    attn_buffer_clear(said);
    if (!tokenizer_decode(tokenizer, &id, 1, said, error))
        return false;
    attn_buffer_add_text(out, said->size > 0 ? "\t\"" : "\t-");
    if (said->size > 0) {
        add_readable(said->data, said->size, true, out);
        attn_buffer_add_text(out, "\"");
    }
    return true;
}

static bool add_tokens(const struct tokenizer *tokenizer, const struct encoding *encoding,
                       struct attn_buffer *out, struct attn_error *error)
{
    struct attn_buffer said = {0};
    const bool spells_bytes = tokenizer_get_kind(tokenizer) == TOKENIZER_BYTE_PAIR;
    bool done = true;
    for (size_t i = 0; done && i < encoding->token_count; i++) {
        const struct token *token = &encoding->tokens[i];
        const char *piece = tokenizer_piece(tokenizer, token->id);
        attn_buffer_format(out, "%d\t", (int)token->id);
        add_readable(piece ? piece : "", piece ? strlen(piece) : 0, false, out);
        if (token->word == TOKEN_NO_WORD)
            attn_buffer_add_text(out, "\t-");
        else
            attn_buffer_format(out, "\t%zu-%zu", token->begin, token->end);
        done = !spells_bytes || add_said(tokenizer, token->id, &said, out, error);
        attn_buffer_add_text(out, "\n");
    }
    attn_buffer_release(&said);
    return done;
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
        char name[256];
        input_describe(input, i, name, sizeof name);
        session_tell_dropped("tokenize", name, &encoding);
        bool done = true;
        if (options->ids) {
            add_ids(&encoding, out);
        } else {
            if (i > 0)
                attn_buffer_add_text(out, "\n");
            done = add_tokens(tokenizer, &encoding, out, error);
        }
        encoding_release(&encoding);
        if (!done)
            return false;
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
