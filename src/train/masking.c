#include "train/masking.h"

#include <stdlib.h>

#include "nn/cross_entropy.h"
#include "train/random.h"

/* Shares as words of 32 bits. */
#define CHOSEN ((uint32_t)(0.15 * 4294967296.0))
#define MASKED ((uint32_t)(0.80 * 4294967296.0))
#define OTHER  ((uint32_t)(0.90 * 4294967296.0))

static bool find_special(const struct tokenizer *tokenizer, const char *spelling, int32_t *id,
                         struct attn_error *error)
{
    *id = tokenizer_special(tokenizer, spelling);
    return *id >= 0 || attn_error_set(error, "the tokenizer has no token %s", spelling);
}

bool mask_words_create(struct mask_words *words, const struct tokenizer *tokenizer,
                       struct attn_error *error)
{
    static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    *words = (struct mask_words){.size = tokenizer_size(tokenizer)};
    if (!find_special(tokenizer, "[CLS]", &words->begin, error) ||
        !find_special(tokenizer, "[SEP]", &words->end, error) ||
        !find_special(tokenizer, "[MASK]", &words->mask, error))
        return false;
    words->special = calloc((size_t)words->size + 1, sizeof *words->special);
    words->ordinary = malloc(((size_t)words->size + 1) * sizeof *words->ordinary);
    if (!words->special || !words->ordinary) {
        mask_words_destroy(words);
        return attn_error_memory(error);
    }
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        int32_t id = tokenizer_special(tokenizer, specials[i]);
        if (id >= 0)
            words->special[id] = true;
    }
    for (int32_t id = 0; id < words->size; id++)
        if (!words->special[id] && tokenizer_piece(tokenizer, id))
            words->ordinary[words->ordinary_count++] = id;
    return true;
}

void mask_words_destroy(struct mask_words *words)
{
    free(words->special);
    free(words->ordinary);
    *words = (struct mask_words){0};
}

/* The words of chance of one token. */
static void draw(const struct mask_place *place, int64_t token, uint32_t chance[4])
{
    enum random_purpose purpose = place->held_out ? RANDOM_MASK_HELD_OUT : RANDOM_MASK;
    int64_t step = place->held_out ? 0 : place->step;
    random_draw(place->seed, purpose, step, place->first_token + token, chance);
}

static void choose(const struct mask_words *words, const uint32_t chance[4], int32_t *id,
                   int32_t *label)
{
    *label = *id;
    if (chance[1] < MASKED)
        *id = words->mask;
    else if (chance[1] < OTHER)
        *id = words->ordinary[random_below(chance[2], words->ordinary_count)];
}

/* The ordinary token at or behind a random place. */
static int64_t force_one(const struct mask_words *words, const struct mask_place *place,
                         int64_t count, int32_t *ids, int32_t *labels)
{
    uint32_t chance[4];
    random_draw(place->seed, RANDOM_FORCED_MASK, place->held_out ? -1 : place->step,
                place->first_token, chance);
    int64_t start = random_below(chance[0], count);
    for (int64_t i = 0; i < count; i++) {
        int64_t token = (start + i) % count;
        if (words->special[ids[token]])
            continue;
        choose(words, chance, &ids[token], &labels[token]);
        return 1;
    }
    return 0;
}

int64_t mask_window(const struct mask_words *words, const struct mask_place *place, int64_t count,
                    int32_t *ids, int32_t *labels)
{
    int64_t chosen = 0;
    for (int64_t token = 0; token < count; token++) {
        uint32_t chance[4];
        labels[token] = CROSS_ENTROPY_IGNORE;
        draw(place, token, chance);
        if (words->special[ids[token]] || chance[0] >= CHOSEN)
            continue;
        choose(words, chance, &ids[token], &labels[token]);
        chosen++;
    }
    return chosen > 0 || count == 0 ? chosen : force_one(words, place, count, ids, labels);
}
