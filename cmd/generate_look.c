#include "generate_look.h"

#include <stdlib.h>

#include "look_labels.h"
#include "text/encoding_extend.h"

enum { NO_WORD = -1 };

/* Tokens joined to words as the eye reads them, which are those of encoding_extend: the pieces that
 * a model writes need not be those into which the tokenizer would split the same text. */
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

/* Of the prompt and of what was written: `text` is what they say. */
static bool encode(const struct generate_look *look, struct encoding *encoding,
                   struct attn_buffer *text, struct attn_error *error)
{
    const struct tokenizer *tokenizer = look->generator->session.tokenizer;
    return encoding_extend(encoding, tokenizer, look->prompt->ids, look->prompt->count, text,
                           error) &&
           encoding_extend(encoding, tokenizer, look->written->ids, look->written->count, text,
                           error);
}

static bool is_special(const struct tokenizer *tokenizer, int32_t id, bool *special,
                       struct attn_error *error)
{
    struct attn_buffer said = {0};
    const bool done = tokenizer_decode(tokenizer, &id, 1, &said, error);
    *special = said.size == 0;
    attn_buffer_release(&said);
    return done;
}

/* The words of all tokens; words->of and words->labels have room for one a token. Special tokens
 * are left out, and so is the word at the first position: heads rest their attention there when
 * nothing concerns them (G. Xiao et al., "Efficient Streaming Language Models with Attention Sinks"
 * (2023)), half of all in the mean, beside which nothing else could be seen. */
static bool split(const struct generate_look *look, const struct encoding *encoding,
                  const struct attn_buffer *text, struct words *words, struct attn_error *error)
{
    int32_t place = NO_WORD;
    for (size_t t = 0; t < words->tokens; t++) {
        const struct token *token = &encoding->tokens[t];
        const struct word *word = &encoding->words[token->word];
        if (t == look->prompt->count)
            words->written = words->count;
        if (t == 0 || token->word != token[-1].word) {
            bool special;
            if (!is_special(look->generator->session.tokenizer, token->id, &special, error))
                return false;
            place = t == 0 || special ? NO_WORD : (int32_t)words->count;
            if (place != NO_WORD) {
                char *label = look_label_word(text->data + word->begin, word->end - word->begin);
                if (!label)
                    return attn_error_memory(error);
                words->labels[words->count++] = label;
            }
        }
        words->of[t] = place;
    }
    return true;
}

static bool words_make(const struct generate_look *look, struct words *words,
                       struct attn_error *error)
{
    struct encoding encoding = {0};
    struct attn_buffer text = {0};
    *words = (struct words){.tokens = look->prompt->count + look->written->count};
    words->of = calloc(words->tokens, sizeof *words->of);
    words->labels = calloc(words->tokens, sizeof *words->labels);
    bool done = (words->of && words->labels) || attn_error_memory(error);
    done = done && encode(look, &encoding, &text, error) &&
           split(look, &encoding, &text, words, error);
    encoding_release(&encoding);
    attn_buffer_release(&text);
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
