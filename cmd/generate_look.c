#include "generate_look.h"

#include <stdlib.h>
#include <string.h>

#include "look_labels.h"
#include "text/unicode.h"

enum { NO_WORD = -1 };

/* Tokens joined to words as the eye reads them. The pieces that a model writes need not be those
 * into which the tokenizer would split the same text, so that words come from what each says. */
struct words {
    size_t tokens;
    int32_t *of;    /* [tokens]: the word of each, or NO_WORD for what is left out */
    char **labels;  /* [count] */
    size_t count;   /* of words */
    size_t written; /* the first word behind the prompt */
};

static void words_release(struct words *words)
{
    for (size_t i = 0; words->labels && i < words->count; i++)
        free(words->labels[i]);
    free(words->labels);
    free(words->of);
}

static int32_t token_at(const struct generate_look *look, size_t index)
{
    size_t prompt = look->prompt->count;
    return index < prompt ? look->prompt->ids[index] : look->written->ids[index - prompt];
}

/* As byte-level pre-tokenizers split: at spaces, and where letters, numbers and signs meet. `text`
 * is the word so far, `before` the kind of the character that stands before the piece. */
static bool begins_word(const struct attn_buffer *piece, const struct attn_buffer *text,
                        enum unicode_kind before)
{
    size_t next;
    if (((unsigned char)piece->data[0] & 0xC0) == 0x80)
        return false; /* the rest of a character */
    if (text->size == 1 && text->data[0] == ' ')
        return piece->data[0] == ' ';
    enum unicode_kind first = unicode_kind_of(utf8_decode(piece->data, piece->size, 0, &next));
    return first == UNICODE_SPACE || first != before;
}

static enum unicode_kind last_kind(const struct attn_buffer *piece)
{
    size_t next, last = utf8_previous(piece->data, piece->size);
    return unicode_kind_of(utf8_decode(piece->data, piece->size, last, &next));
}

/* Ends the word whose text was collected. */
static bool end_word(struct words *words, struct attn_buffer *text)
{
    if (text->size == 0)
        return true;
    words->labels[words->count] = look_label_word(text->data, text->size);
    attn_buffer_clear(text);
    return words->labels[words->count++] != NULL;
}

/* The words of all tokens; words->of and words->labels have room for one a token. Special tokens
 * are left out, and so is the word at the first position: heads rest their attention there when
 * nothing concerns them (G. Xiao et al., "Efficient Streaming Language Models with Attention Sinks"
 * (2023)), half of all in the mean, beside which nothing else could be seen. */
static bool split(const struct generate_look *look, struct words *words, struct attn_buffer *text,
                  struct attn_buffer *piece, struct attn_error *error)
{
    const struct tokenizer *tokenizer = look->generator->session.tokenizer;
    enum unicode_kind before = UNICODE_SPACE;
    bool is_rest = true; /* of attention: within the word at the first position */
    for (size_t i = 0; i < words->tokens; i++) {
        const int32_t id = token_at(look, i);
        attn_buffer_clear(piece);
        if (!tokenizer_decode(tokenizer, &id, 1, piece, error))
            return false;
        const bool is_special = piece->size == 0, is_written_first = i == look->prompt->count;
        if (is_special || is_written_first || begins_word(piece, text, before)) {
            if (!end_word(words, text))
                return attn_error_memory(error);
            is_rest = i == 0;
        }
        if (is_written_first)
            words->written = words->count;
        const bool is_left_out = is_special || is_rest;
        words->of[i] = is_left_out ? NO_WORD : (int32_t)words->count;
        if (!is_left_out)
            attn_buffer_add(text, piece->data, piece->size);
        before = is_special ? UNICODE_SPACE : last_kind(piece);
    }
    return (end_word(words, text) && !text->failed) || attn_error_memory(error);
}

static bool words_make(const struct generate_look *look, struct words *words,
                       struct attn_error *error)
{
    struct attn_buffer text = {0}, piece = {0};
    *words = (struct words){.tokens = look->prompt->count + look->written->count};
    words->of = calloc(words->tokens, sizeof *words->of);
    words->labels = calloc(words->tokens, sizeof *words->labels);
    bool done = words->of && words->labels ? split(look, words, &text, &piece, error)
                                           : attn_error_memory(error);
    attn_buffer_release(&text);
    attn_buffer_release(&piece);
    if (done && words->written == words->count)
        done = attn_error_set(error, "--look: no word was written that could look back");
    return done;
}

/* The row of a position is that of the word which its token made the model write: the next one. */
static void find_rows(const struct words *words, size_t prompt, int32_t *row_of)
{
    for (size_t i = 0; i < words->tokens; i++) {
        bool writes = i + 1 < words->tokens && i + 1 >= prompt && words->of[i + 1] != NO_WORD;
        row_of[i] = writes ? words->of[i + 1] - (int32_t)words->written : NO_WORD;
    }
}

/* A panel for the mean, then one for each layer. */
static bool fill_panels(const struct generate_look *look, const struct words *words,
                        const int32_t *row_of, struct attention_map *map, struct map_panel *panels,
                        float *weights, struct attn_error *error)
{
    for (size_t n = 0; n < map->panel_count; n++) {
        const int layer = (int)n - 1;
        float *panel = weights + n * map->rows * map->columns;
        if (!trace_merge(look->trace, n == 0 ? TRACE_MEAN : layer, row_of, map->rows, words->of,
                         map->columns, panel, error))
            return false;
        look_renormalize_rows(panel, map->rows, map->columns);
        panels[n] = (struct map_panel){
            .layer = n == 0 ? MAP_MEAN : layer, .head = MAP_MEAN, .weights = panel};
    }
    return true;
}

static bool draw(const struct generate_look *look, const struct words *words,
                 struct attn_error *error)
{
    const struct generate_options *options = look->generator->options;
    struct attn_buffer text = {0};
    attn_buffer_add(&text, look->text->data, look->text->size);
    if (options->chat)
        attn_buffer_add_text(&text, "\n");
    attn_buffer_add(&text, look->written->text.data, look->written->text.size);

    const char *const *labels = (const char *const *)words->labels;
    struct attention_map map = {
        .model = look->generator->session.name,
        .text = text.data,
        .text_size = text.size,
        .rows = words->count - words->written,
        .columns = words->count,
        .row_labels = labels + words->written,
        .row_label_count = words->count - words->written,
        .column_labels = labels,
        .column_label_count = words->count,
        .panel_count = (size_t)look->generator->settings.layers + 1,
        .renormalized = true,
    };
    int32_t *row_of = calloc(words->tokens, sizeof *row_of);
    struct map_panel *panels = calloc(map.panel_count, sizeof *panels);
    float *weights = calloc(map.panel_count, map.rows * map.columns * sizeof *weights);
    bool done = (row_of && panels && weights && !text.failed) || attn_error_memory(error);
    if (done) {
        map.panels = panels;
        find_rows(words, look->prompt->count, row_of);
        done = fill_panels(look, words, row_of, &map, panels, weights, error) &&
               map_form_write("generate", options->look, options->draw, &map, error);
    }
    free(weights);
    free(panels);
    free(row_of);
    attn_buffer_release(&text);
    return done;
}

bool generate_look_draw(const struct generate_look *look, struct attn_error *error)
{
    struct words words;
    bool done = words_make(look, &words, error) && draw(look, &words, error);
    words_release(&words);
    return done;
}
