/* attn fill: words for the places that a text leaves open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "draw/label.h"
#include "draw/terminal.h"
#include "model/masked_words.h"
#include "options.h"
#include "output.h"
#include "session.h"
#include "verb.h"

#define MASK "[MASK]"

enum { OPTION_PAIR = OPTION_OWN, OPTION_TOP };

enum { TOP_DEFAULT = 5, INDENT = 2, NAME_SIZE = 256 };

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_FILE,
    OPTION_ENTRY_JSON,
    OPTION_ENTRY_HELP,
    {"pair", required_argument, NULL, OPTION_PAIR},
    {"top", required_argument, NULL, OPTION_TOP},
    OPTION_ENTRY_END,
};

struct fill_options {
    struct shared_options shared;
    struct text pair; /* data is NULL for none */
    int64_t top;
};

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct fill_options *options = user;
    switch (option) {
    case OPTION_PAIR:
        options->pair = (struct text){value, strlen(value)};
        break;
    case OPTION_TOP:
        return options_integer("--top", value, 1, INT32_MAX, &options->top, error);
    }
    return true;
}

/* All that one run holds. */
struct filling {
    const struct fill_options *options;
    struct session session;
    struct input input;
    struct encoding *encodings; /* [input.count] */
    struct masked_words *model;
    int32_t mask; /* the id of [MASK] */
    int64_t top;  /* no more than the vocabulary has */
};

/* One text's open places, and what may stand there. */
struct text_filling {
    int64_t count;
    int64_t *places;           /* [count]: tokens of the encoding */
    struct masked_word *words; /* [count][top] */
};

/* A GPT is refused as what it is. */
static bool check_kind(const struct session *session, struct attn_error *error)
{
    enum model_kind kind;
    if (!model_source_kind(session->source, &kind, error))
        return false;
    if (kind == MODEL_BERT)
        return true;
    return attn_error_set(error,
                          "%s is a %s, which tells what comes next ('attn generate') and not what "
                          "stands at " MASK ": a BERT with a masked-word head is needed",
                          session->name, kind == MODEL_GPT2 ? "GPT-2" : "Llama");
}

static bool find_mask(struct filling *filling, struct attn_error *error)
{
    filling->mask = tokenizer_special(filling->session.tokenizer, MASK);
    return filling->mask >= 0 ||
           attn_error_set(error, "%s: the model's tokenizer has no token " MASK,
                          filling->session.path);
}

static int64_t count_masks(const struct filling *filling, const struct encoding *encoding)
{
    int64_t count = 0;
    for (size_t t = 0; t < encoding->token_count; t++)
        count += encoding->tokens[t].id == filling->mask;
    return count;
}

static bool check_text(const struct filling *filling, const struct encoding *encoding,
                       const char *name, struct attn_error *error)
{
    const int64_t positions = filling->session.config.positions;
    if (count_masks(filling, encoding) == 0)
        return attn_error_set(error, "%s has no " MASK ", which stands where a word is missing",
                              name);
    if ((int64_t)encoding->token_count > positions)
        return attn_error_set(error, "%s has %zu tokens, the model has %lld positions: shorten it",
                              name, encoding->token_count, (long long)positions);
    return true;
}

/* All texts are encoded before the weights are read: a text that cannot be used is told at once. */
static bool encode_all(struct filling *filling, struct attn_error *error)
{
    const struct input *input = &filling->input;
    const struct text *pair = &filling->options->pair;
    for (size_t i = 0; i < input->count; i++) {
        char name[NAME_SIZE];
        input_describe(input, i, name, sizeof name);
        struct encoding encoding;
        if (!session_encode(&filling->session, &input->texts[i], name, pair->data ? pair : NULL,
                            &encoding, error))
            return false;
        filling->encodings[i] = encoding;
        if (!check_text(filling, &encoding, name, error))
            return false;
    }
    return true;
}

/* An id that only the model's vocabulary has is shown as its number. */
static void add_word(const struct filling *filling, int32_t id, struct attn_buffer *out)
{
    const char *piece = tokenizer_piece(filling->session.tokenizer, id);
    if (piece)
        attn_buffer_add_text(out, piece);
    else
        attn_buffer_format(out, "#%ld", (long)id);
}

static bool add_ranking(const struct filling *filling, const struct masked_word *words, float scale,
                        int indent, struct attn_buffer *out, struct attn_error *error)
{
    struct attn_buffer *labels = calloc((size_t)filling->top, sizeof *labels);
    struct ranking_line *lines = calloc((size_t)filling->top, sizeof *lines);
    bool made = labels && lines;
    for (int64_t n = 0; made && n < filling->top; n++) {
        add_word(filling, words[n].id, &labels[n]);
        made = !labels[n].failed;
        lines[n] = (struct ranking_line){labels[n].data, (float)words[n].probability};
    }
    if (made)
        draw_ranking(lines, (size_t)filling->top, scale, indent,
                     output_has_color() ? TERMINAL_COLOR : TERMINAL_PLAIN, out);
    for (int64_t n = 0; labels && n < filling->top; n++)
        attn_buffer_release(&labels[n]);
    free(labels);
    free(lines);
    return made || attn_error_memory(error);
}

static void add_heading(const char *text, size_t size, struct attn_buffer *out)
{
    const bool color = output_has_color();
    attn_buffer_add_text(out, color ? "\x1b[1m" : "");
    label_show(text, size, out);
    attn_buffer_add_text(out, color ? "\x1b[0m\n" : "\n");
}

/* The text where there are several, the place where a text has several, and the words. */
static bool add_lines(const struct filling *filling, size_t index, const struct text_filling *found,
                      struct attn_buffer *out, struct attn_error *error)
{
    const struct text *text = &filling->input.texts[index];
    const bool texts = filling->input.count > 1, masks = found->count > 1;
    float scale = 0;
    for (int64_t n = 0; n < found->count; n++)
        if ((float)found->words[n * filling->top].probability > scale)
            scale = (float)found->words[n * filling->top].probability;
    if (index > 0)
        attn_buffer_add_text(out, "\n");
    if (texts)
        add_heading(text->data, text->size, out);
    for (int64_t n = 0; n < found->count; n++) {
        char place[32];
        const int size = snprintf(place, sizeof place, MASK " %lld", (long long)n + 1);
        if (masks)
            add_heading(place, (size_t)size, out);
        if (!add_ranking(filling, found->words + n * filling->top, scale,
                         texts || masks ? INDENT : 0, out, error))
            return false;
    }
    return true;
}

static void add_json_words(const struct filling *filling, const struct masked_word *words,
                           struct attn_buffer *out)
{
    struct attn_buffer word = {0};
    for (int64_t n = 0; n < filling->top; n++) {
        attn_buffer_clear(&word);
        add_word(filling, words[n].id, &word);
        attn_buffer_add_text(out, n > 0 ? ", {\"word\": " : "{\"word\": ");
        if (word.failed)
            out->failed = true;
        else
            attn_buffer_add_json_string(out, word.data, word.size);
        attn_buffer_format(out, ", \"id\": %ld, \"probability\": ", (long)words[n].id);
        attn_buffer_add_json_float(out, (float)words[n].probability);
        attn_buffer_add_text(out, "}");
    }
    attn_buffer_release(&word);
}

static void add_json(const struct filling *filling, size_t index, const struct text_filling *found,
                     struct attn_buffer *out)
{
    const struct text *text = &filling->input.texts[index], *pair = &filling->options->pair;
    attn_buffer_add_text(out, "{\"model\": ");
    attn_buffer_add_json_string(out, filling->session.name, strlen(filling->session.name));
    attn_buffer_add_text(out, ", \"text\": ");
    attn_buffer_add_json_string(out, text->data, text->size);
    attn_buffer_add_text(out, ", \"pair\": ");
    if (pair->data)
        attn_buffer_add_json_string(out, pair->data, pair->size);
    else
        attn_buffer_add_text(out, "null");
    attn_buffer_add_text(out, ", \"masks\": [");
    for (int64_t n = 0; n < found->count; n++) {
        const struct token *token = &filling->encodings[index].tokens[found->places[n]];
        attn_buffer_format(out, "%s{\"in_pair\": %s, \"begin\": %zu, \"end\": %zu, \"words\": [",
                           n > 0 ? ", " : "", token->text == 1 ? "true" : "false", token->begin,
                           token->end);
        add_json_words(filling, found->words + n * filling->top, out);
        attn_buffer_add_text(out, "]}");
    }
    attn_buffer_add_text(out, "]}\n");
}

/* Finds the open places; the words are asked for elsewhere. */
static bool start_text(const struct filling *filling, const struct encoding *encoding,
                       struct text_filling *found, struct attn_error *error)
{
    int64_t words;
    *found = (struct text_filling){.count = count_masks(filling, encoding)};
    found->places = calloc((size_t)found->count, sizeof *found->places);
    found->words = attn_checked_multiply(found->count, filling->top, &words)
                       ? calloc((size_t)words, sizeof *found->words)
                       : NULL;
    if (!found->places || !found->words)
        return attn_error_memory(error);
    int64_t count = 0;
    for (size_t t = 0; t < encoding->token_count; t++)
        if (encoding->tokens[t].id == filling->mask)
            found->places[count++] = (int64_t)t;
    return true;
}

static bool fill_text(const struct filling *filling, size_t index, struct attn_buffer *out,
                      struct attn_error *error)
{
    struct text_filling found;
    const struct encoding *encoding = &filling->encodings[index];
    bool done = start_text(filling, encoding, &found, error) &&
                masked_words_tell(filling->model, &filling->session.compute, encoding, found.places,
                                  found.count, filling->top, found.words, error);
    if (done && filling->options->shared.json)
        add_json(filling, index, &found, out);
    else if (done)
        done = add_lines(filling, index, &found, out, error);
    free(found.places);
    free(found.words);
    return done;
}

static bool fill_all(const struct filling *filling, struct attn_error *error)
{
    struct attn_buffer out = {0};
    bool done = true;
    for (size_t i = 0; done && i < filling->input.count; i++) {
        attn_buffer_clear(&out);
        done = fill_text(filling, i, &out, error) && output_write(&out, error);
    }
    attn_buffer_release(&out);
    return done;
}

static bool fill(struct filling *filling, struct attn_error *error)
{
    struct session *session = &filling->session;
    const struct shared_options *shared = &filling->options->shared;
    if (!session_locate(session, shared->model, error) || !check_kind(session, error) ||
        !session_open_config(session, error) || !session_open_tokenizer(session, error) ||
        !find_mask(filling, error) || !encode_all(filling, error) ||
        !masked_words_open(&filling->model, session->path, error) ||
        !compute_create(&session->compute, shared->threads, error))
        return false;
    const int64_t vocabulary = masked_words_vocabulary(filling->model);
    filling->top = filling->options->top < vocabulary ? filling->options->top : vocabulary;
    return fill_all(filling, error);
}

static bool run(const struct fill_options *options, struct attn_error *error)
{
    struct filling filling = {.options = options};
    if (options->pair.data &&
        !input_check_utf8("--pair", options->pair.data, options->pair.size, error))
        return false;
    if (!input_read(&options->shared, INPUT_LINES, &filling.input, error))
        return false;
    filling.encodings = calloc(filling.input.count, sizeof *filling.encodings);
    const bool done = filling.encodings ? fill(&filling, error) : attn_error_memory(error);
    for (size_t i = 0; filling.encodings && i < filling.input.count; i++)
        encoding_release(&filling.encodings[i]);
    free(filling.encodings);
    masked_words_close(filling.model);
    session_close(&filling.session);
    input_release(&filling.input);
    return done;
}

enum status verb_fill(int argc, char **argv, struct attn_error *error)
{
    struct fill_options options = {.top = TOP_DEFAULT};
    if (!options_parse(argc, argv, option_table, take_option, &options, &options.shared, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    if (!input_check(&options.shared, INPUT_LINES, error))
        return STATUS_USAGE;
    return run(&options, error) ? STATUS_SUCCESS : STATUS_FAILURE;
}
