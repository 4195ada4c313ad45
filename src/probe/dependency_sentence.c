#include "probe/dependency_sentence.h"

#include <stdlib.h>
#include <string.h>

#include "probe/head_rows.h"

void dependency_sentence_match(const struct treebank *treebank,
                               const struct treebank_sentence *sentence,
                               const struct encoding *encoding, int32_t *word_of)
{
    const struct treebank_word *words = treebank->words + sentence->first;
    size_t word = 0, begin = 0, end = strlen(words[0].form);
    for (size_t t = 0; t < encoding->token_count; t++) {
        const struct token *token = &encoding->tokens[t];
        word_of[t] = NO_DEPENDENCY_WORD;
        if (token->word == TOKEN_NO_WORD)
            continue;
        while (token->begin >= end && word + 1 < sentence->count) {
            begin = end + 1;
            end = begin + strlen(words[++word].form);
        }
        if (token->begin < end && token->end > begin)
            word_of[t] = (int32_t)word;
    }
}

/* What the observer needs and fills. */
struct sentence_reading {
    struct dependency_scores *scores;
    const struct treebank *treebank;
    const struct treebank_sentence *sentence;
    size_t tokens;
    int32_t *word_of; /* [tokens] */
    float *tile;      /* HEAD_ROWS_TILE · tokens */
    float *row;       /* [words]: of the word whose pieces come */
    size_t pieces;    /* of it, so far */
    struct dependency_links links;
    int64_t layer;
};

/* A word's pieces come one behind the other. */
static void add_row(void *user, int64_t i, const float *weights)
{
    struct sentence_reading *reading = user;
    const size_t words = reading->sentence->count, place = (size_t)i;
    const int32_t word = reading->word_of[place];
    if (word == NO_DEPENDENCY_WORD)
        return;
    if (reading->pieces == 0)
        for (size_t n = 0; n < words; n++)
            reading->row[n] = 0.0f;
    for (size_t t = 0; t < reading->tokens; t++)
        if (reading->word_of[t] != NO_DEPENDENCY_WORD)
            reading->row[reading->word_of[t]] += weights[t];
    reading->pieces++;
    if (place + 1 < reading->tokens && reading->word_of[place + 1] == word)
        return;
    for (size_t n = 0; n < words; n++)
        reading->row[n] /= (float)reading->pieces;
    reading->pieces = 0;
    dependency_links_add(&reading->links, (size_t)word, reading->row);
}

static void begin_head(void *user, int64_t head)
{
    (void)head;
    struct sentence_reading *reading = user;
    dependency_links_begin(&reading->links, reading->sentence->count);
}

static void end_head(void *user, int64_t head)
{
    struct sentence_reading *reading = user;
    dependency_scores_add(reading->scores, reading->treebank, reading->sentence, reading->layer,
                          head, &reading->links);
}

static bool observe(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    struct sentence_reading *reading = user;
    const struct head_rows_visitor visitor = {begin_head, add_row, end_head, reading};
    reading->layer = layer;
    return head_rows_visit(compute, record, reading->tile, &visitor, error);
}

bool dependency_sentence_add(struct dependency_scores *scores, const struct treebank *treebank,
                             const struct treebank_sentence *sentence, struct text_model *model,
                             const struct compute *compute, const struct encoding *encoding,
                             struct attn_error *error)
{
    const size_t tokens = encoding->token_count;
    const int64_t positions = text_model_get_settings(model)->positions;
    if (tokens == 0 || tokens > (size_t)positions)
        return attn_error_set(error, "the sentence has %zu tokens, but must have 1 to %lld", tokens,
                              (long long)positions);
    struct sentence_reading reading = {
        .scores = scores,
        .treebank = treebank,
        .sentence = sentence,
        .tokens = tokens,
        .word_of = calloc(tokens, sizeof *reading.word_of),
        .tile = calloc(tokens, HEAD_ROWS_TILE * sizeof *reading.tile),
        .row = calloc(sentence->count, sizeof *reading.row),
    };
    bool done = (reading.word_of && reading.tile && reading.row) || attn_error_memory(error);
    if (done && dependency_links_create(&reading.links, sentence->count, error)) {
        dependency_sentence_match(treebank, sentence, encoding, reading.word_of);
        const struct model_observer observer = {.observe = observe, .user = &reading};
        done = text_model_read(model, compute, encoding, &observer, NULL, error);
        dependency_links_release(&reading.links);
    } else {
        done = false;
    }
    free(reading.word_of);
    free(reading.tile);
    free(reading.row);
    return done;
}
