#include "probe/head_scores.h"

#include <math.h>
#include <stdlib.h>

#include "probe/head_rows.h"

/* How many rows of all texts each score is a mean of. */
struct row_counts {
    int64_t texts, rows, previous, next, separators, duplicate, induction;
};

struct head_collector {
    int64_t layers, heads;
    bool causal;
    struct row_counts counts;
    struct head_scores *sums; /* [layers][heads]: over rows; of the sink, over texts */
};

/* One text while the model reads it. */
struct text_rows {
    struct head_collector *collector;
    struct head_scores *layer; /* sums of the layer's heads, */
    struct head_scores *sums;  /* and of the one whose rows come */
    int64_t tokens;
    int64_t *earlier;   /* [tokens]: the nearest earlier place of the same token, −1: none */
    int64_t *separator; /* [separators]: where they stand */
    int64_t separators;
    float *tile;       /* HEAD_ROWS_TILE · tokens */
    double *received;  /* [tokens]: the sum of what the head's rows gave to each key, */
    double *travelled; /* and of that times the distance */
};

bool head_collector_create(struct head_collector **collector,
                           const struct text_model_settings *settings, struct attn_error *error)
{
    *collector = NULL;
    struct head_collector *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    *made = (struct head_collector){
        .layers = settings->layers,
        .heads = settings->heads,
        .causal = settings->kind != MODEL_BERT,
        .sums = calloc((size_t)settings->layers, (size_t)settings->heads * sizeof *made->sums),
    };
    if (!made->sums) {
        head_collector_destroy(made);
        return attn_error_memory(error);
    }
    *collector = made;
    return true;
}

void head_collector_destroy(struct head_collector *collector)
{
    if (!collector)
        return;
    free(collector->sums);
    free(collector);
}

static void add_row(void *user, int64_t i, const float *weights)
{
    struct text_rows *text = user;
    struct head_scores *sums = text->sums;
    const int64_t seen = text->collector->causal ? i + 1 : text->tokens;
    double *restrict received = text->received, *restrict travelled = text->travelled;
    double entropy = 0.0, separators = 0.0, duplicate = 0.0, induction = 0.0;
    /* Tokens are fewer than 2³¹, and 32-bit places are what the compiler can make doubles of four
     * at a time. */
    const int32_t place = (int32_t)i;
    for (int32_t j = 0; j < seen; j++) {
        const double weight = (double)weights[j];
        received[j] += weight;
        travelled[j] += weight * (double)abs(place - j);
    }
    for (int64_t j = 0; j < seen; j++)
        if (weights[j] > 0.0f)
            entropy -= (double)(weights[j] * logf(weights[j]));
    for (int64_t n = 0; n < text->separators; n++)
        separators += (double)weights[text->separator[n]];
    for (int64_t j = text->earlier[i]; j >= 0; j = text->earlier[j]) {
        duplicate += (double)weights[j];
        induction += j + 1 < i ? (double)weights[j + 1] : 0.0;
    }
    sums->entropy += entropy;
    sums->self += (double)weights[i];
    sums->previous += i > 0 ? (double)weights[i - 1] : 0.0;
    sums->next += i + 1 < seen ? (double)weights[i + 1] : 0.0;
    sums->first += (double)weights[0];
    sums->separators += separators;
    sums->duplicate += duplicate;
    sums->induction += induction;
}

static void begin_head(void *user, int64_t head)
{
    struct text_rows *text = user;
    text->sums = text->layer + head;
    for (int64_t j = 0; j < text->tokens; j++)
        text->received[j] = text->travelled[j] = 0.0;
}

/* Takes over what was kept by key. */
static void end_head(void *user, int64_t head)
{
    (void)head;
    struct text_rows *text = user;
    double largest = 0.0;
    for (int64_t j = 0; j < text->tokens; j++)
        text->sums->distance += text->travelled[j];
    for (int64_t j = 0; j < text->tokens; j++) {
        const int64_t rows = text->collector->causal ? text->tokens - j : text->tokens;
        if (rows < text->tokens - rows)
            break;
        largest = fmax(largest, text->received[j] / (double)rows);
    }
    text->sums->sink += largest;
}

static bool observe(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    struct text_rows *text = user;
    const struct head_rows_visitor visitor = {begin_head, add_row, end_head, text};
    text->layer = text->collector->sums + layer * text->collector->heads;
    return head_rows_visit(compute, record, text->tile, &visitor, error);
}

/* Where each token stood before, and which are separators. */
static void find_places(const struct encoding *encoding, struct text_rows *text)
{
    const struct token *tokens = encoding->tokens;
    for (int64_t i = 0; i < text->tokens; i++) {
        int64_t j = i - 1;
        while (j >= 0 && tokens[j].id != tokens[i].id)
            j--;
        text->earlier[i] = j;
        if (i > 0 && tokens[i].word == TOKEN_NO_WORD)
            text->separator[text->separators++] = i;
    }
}

static void count_rows(const struct text_rows *text, struct row_counts *counts)
{
    for (int64_t i = 0; i < text->tokens; i++) {
        const int64_t *earlier = text->earlier;
        counts->duplicate += earlier[i] >= 0;
        /* Behind the token right before stands the row itself: it takes a place before that. */
        counts->induction += earlier[i] >= 0 && (earlier[i] < i - 1 || earlier[earlier[i]] >= 0);
    }
    counts->texts++;
    counts->rows += text->tokens;
    counts->previous += text->tokens - 1;
    counts->next += text->tokens - 1;
    counts->separators += text->separators > 0 ? text->tokens : 0;
}

bool head_collector_add(struct head_collector *collector, struct text_model *model,
                        const struct compute *compute, const struct encoding *encoding,
                        struct attn_error *error)
{
    const size_t tokens = encoding->token_count;
    const int64_t positions = text_model_get_settings(model)->positions;
    if (tokens == 0 || tokens > (size_t)positions)
        return attn_error_set(error, "the text has %zu tokens, but must have 1 to %lld", tokens,
                              (long long)positions);
    struct text_rows text = {
        .collector = collector,
        .tokens = (int64_t)tokens,
        .earlier = calloc(tokens, sizeof *text.earlier),
        .separator = calloc(tokens, sizeof *text.separator),
        .tile = calloc(tokens, HEAD_ROWS_TILE * sizeof *text.tile),
        .received = calloc(tokens, sizeof *text.received),
        .travelled = calloc(tokens, sizeof *text.travelled),
    };
    bool done = (text.earlier && text.separator && text.tile && text.received && text.travelled) ||
                attn_error_memory(error);
    if (done) {
        find_places(encoding, &text);
        const struct model_observer observer = {.observe = observe, .user = &text};
        done = text_model_read(model, compute, encoding, &observer, NULL, error);
    }
    if (done)
        count_rows(&text, &collector->counts);
    free(text.earlier);
    free(text.separator);
    free(text.tile);
    free(text.received);
    free(text.travelled);
    return done;
}

/* NaN where the score has no rows. */
static double mean(double sum, int64_t rows)
{
    return rows > 0 ? sum / (double)rows : (double)NAN;
}

bool head_collector_finish(const struct head_collector *collector, struct head_survey *survey,
                           struct attn_error *error)
{
    *survey = (struct head_survey){0};
    const struct row_counts *counts = &collector->counts;
    if (counts->texts == 0)
        return attn_error_set(error, "no text to look at");
    const int64_t total = collector->layers * collector->heads;
    struct head_scores *scores = calloc((size_t)total, sizeof *scores);
    if (!scores)
        return attn_error_memory(error);
    for (int64_t n = 0; n < total; n++) {
        const struct head_scores *sums = &collector->sums[n];
        scores[n] = (struct head_scores){
            .entropy = mean(sums->entropy, counts->rows),
            .distance = mean(sums->distance, counts->rows),
            .self = mean(sums->self, counts->rows),
            .previous = mean(sums->previous, counts->previous),
            .next = mean(sums->next, counts->next),
            .first = mean(sums->first, counts->rows),
            .separators = mean(sums->separators, counts->separators),
            .sink = mean(sums->sink, counts->texts),
            .duplicate = mean(sums->duplicate, counts->duplicate),
            .induction = mean(sums->induction, counts->induction),
        };
    }
    *survey = (struct head_survey){collector->layers, collector->heads, scores, counts->texts,
                                   counts->rows};
    return true;
}

void head_survey_release(struct head_survey *survey)
{
    free(survey->scores);
    *survey = (struct head_survey){0};
}
