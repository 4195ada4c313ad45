#include "train/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Tokens of the text in a sequence: [CLS] and [SEP] stand around those of TRAIN_MLM. */
static int64_t span_of(const struct batches *batches)
{
    return batches->objective == TRAIN_MLM ? batches->context - 2 : batches->context;
}

/* Tokens at the end of a text that are told, and have nothing behind them to tell. */
static int64_t labels_behind(const struct batches *batches)
{
    return batches->objective == TRAIN_GPT ? 1 : 0;
}

/* Tokens of the text that are what held-out sequences begin with. */
static int64_t held_out_length(const struct batches *batches)
{
    int64_t length = batches->held_out_count - labels_behind(batches);
    return length > 0 ? length : 0;
}

static bool check_lengths(const struct batches *batches, struct attn_error *error)
{
    int64_t needed = span_of(batches) + labels_behind(batches);
    if (batches->training_count < needed)
        return attn_error_set(error,
                              "the text has %lld tokens to learn from, a sequence of --ctx %lld "
                              "needs %lld",
                              (long long)batches->training_count, (long long)batches->context,
                              (long long)needed);
    return true;
}

static bool has_ordinary(const struct mask_words *words, const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!words->special[ids[i]])
            return true;
    return false;
}

/* Words that the vocabulary does not have are never masked: there have to be others. */
static bool open_words(struct batches *batches, const struct tokenizer *tokenizer,
                       struct attn_error *error)
{
    if (batches->objective != TRAIN_MLM)
        return true;
    if (!mask_words_create(&batches->words, tokenizer, error))
        return false;
    if (!has_ordinary(&batches->words, batches->training, batches->training_count))
        return attn_error_set(error, "the tokenizer knows no word of the text");
    return true;
}

static bool allocate(struct batches *batches, struct attn_error *error)
{
    int64_t tokens;
    if (!attn_checked_multiply(batches->batch, batches->context, &tokens))
        return attn_error_memory(error);
    batches->starts = calloc((size_t)batches->batch + 1, sizeof *batches->starts);
    batches->ids = calloc((size_t)tokens, sizeof *batches->ids);
    batches->labels = calloc((size_t)tokens, sizeof *batches->labels);
    return (batches->starts && batches->ids && batches->labels) || attn_error_memory(error);
}

bool batches_create(struct batches *batches, const struct train_settings *settings,
                    const struct corpus *corpus, const struct tokenizer *tokenizer,
                    struct attn_error *error)
{
    *batches = (struct batches){
        .objective = settings->objective,
        .context = settings->context,
        .batch = settings->batch,
        .seed = (uint64_t)settings->seed,
        .training = corpus->ids,
        .held_out = corpus->ids + corpus->training_count,
        .training_count = corpus->training_count,
        .held_out_count = corpus->held_out_count,
    };
    int64_t windowed = batches->training_count - labels_behind(batches);
    bool done = check_lengths(batches, error) && open_words(batches, tokenizer, error) &&
                allocate(batches, error) &&
                windows_create(&batches->windows, windowed, span_of(batches), batches->seed, error);
    if (!done)
        batches_destroy(batches);
    return done;
}

void batches_destroy(struct batches *batches)
{
    windows_destroy(&batches->windows);
    mask_words_destroy(&batches->words);
    free(batches->starts);
    free(batches->ids);
    free(batches->labels);
    *batches = (struct batches){0};
}

/* Each token is told by the one before it. */
static void add_gpt_sequence(struct batches *batches, const int32_t *tokens, int64_t count)
{
    int64_t begin = batches->starts[batches->sequences];
    memcpy(batches->ids + begin, tokens, (size_t)count * sizeof *tokens);
    memcpy(batches->labels + begin, tokens + 1, (size_t)count * sizeof *tokens);
    batches->labels_counted += count;
    batches->starts[++batches->sequences] = begin + count;
}

static void add_mlm_sequence(struct batches *batches, const int32_t *tokens, int64_t count,
                             const struct mask_place *place)
{
    int64_t begin = batches->starts[batches->sequences];
    int32_t *ids = batches->ids + begin, *labels = batches->labels + begin;
    ids[0] = batches->words.begin;
    memcpy(ids + 1, tokens, (size_t)count * sizeof *tokens);
    ids[count + 1] = batches->words.end;
    labels[0] = labels[count + 1] = CROSS_ENTROPY_IGNORE;
    batches->labels_counted += mask_window(&batches->words, place, count, ids + 1, labels + 1);
    batches->starts[++batches->sequences] = begin + count + 2;
}

static void add_sequence(struct batches *batches, const int32_t *tokens, int64_t count,
                         const struct mask_place *place)
{
    if (batches->objective == TRAIN_GPT)
        add_gpt_sequence(batches, tokens, count);
    else
        add_mlm_sequence(batches, tokens, count, place);
}

void batches_fill(struct batches *batches, int64_t step)
{
    batches->sequences = 0;
    batches->labels_counted = 0;
    for (int64_t i = 0; i < batches->batch; i++) {
        struct mask_place place = {
            .seed = batches->seed, .step = step, .first_token = i * batches->context};
        int64_t begin = windows_begin(&batches->windows, step * batches->batch + i);
        add_sequence(batches, batches->training + begin, span_of(batches), &place);
    }
}

int64_t batches_held_out_sequences(const struct batches *batches)
{
    int64_t span = span_of(batches);
    return (held_out_length(batches) + span - 1) / span;
}

void batches_fill_held_out(struct batches *batches, int64_t first, int64_t count)
{
    int64_t span = span_of(batches);
    batches->sequences = 0;
    batches->labels_counted = 0;
    for (int64_t i = first; i < first + count; i++) {
        int64_t begin = i * span, left = held_out_length(batches) - begin;
        struct mask_place place = {.seed = batches->seed, .held_out = true, .first_token = begin};
        add_sequence(batches, batches->held_out + begin, left < span ? left : span, &place);
    }
}

struct language_batch batches_part(const struct batches *batches, int64_t first, int64_t count)
{
    /* All sequences before the last have one length: the first starts serve any part. */
    int64_t begin = batches->starts[first];
    return (struct language_batch){
        .batch = {.sequences = count, .starts = batches->starts},
        .ids = batches->ids + begin,
        .labels = batches->labels + begin,
    };
}
