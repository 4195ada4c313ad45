#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "probe/look_heads.h"
#include "probe/what_if.h"

/* Tokens of a cut as sums up to each, so that whether a range holds any is one subtraction. */
struct token_set {
    int32_t *before; /* [tokens + 1]: members before a token */
};

struct token_cut {
    struct token_set queries, keys;
};

/* What a layer's callback is given. */
struct layer_cut {
    const struct what_if_change *change;
    const bool *heads; /* [heads]: in which the cuts are made */
};

struct what_if_change {
    int64_t layers, heads, tokens;
    bool *heads_off, *heads_cut; /* [layers][heads] */
    struct layer_cut *layer_cuts;
    struct attention_change *changes; /* [layers] */
    bool *is_changed;                 /* [layers] */
    int32_t *numbers;                 /* what the cuts' sets point into */
    struct token_cut *cuts;           /* [cut_count] */
    size_t cut_count;
};

static bool holds(const struct token_set *set, int64_t begin, int64_t end)
{
    return set->before[end] > set->before[begin];
}

/* Runs on several threads, once a tile of each head: what holds no cut is left at once. */
static void cut_tile(void *user, const attn_score_tile *tile)
{
    const struct layer_cut *layer = user;
    const struct what_if_change *change = layer->change;
    const int64_t query_end =
        tile->query + tile->queries < change->tokens ? tile->query + tile->queries : change->tokens;
    const int64_t key_end =
        tile->key + tile->keys < change->tokens ? tile->key + tile->keys : change->tokens;
    if (!layer->heads[tile->head] || tile->query >= query_end || tile->key >= key_end)
        return;
    for (size_t n = 0; n < change->cut_count; n++) {
        const struct token_cut *cut = &change->cuts[n];
        if (!holds(&cut->queries, tile->query, query_end) || !holds(&cut->keys, tile->key, key_end))
            continue;
        for (int64_t j = tile->key; j < key_end; j++) {
            if (!holds(&cut->keys, j, j + 1))
                continue;
            float *scores = tile->scores + (j - tile->key) * tile->key_stride;
            for (int64_t i = tile->query; i < query_end; i++)
                if (holds(&cut->queries, i, i + 1))
                    scores[(i - tile->query) * tile->query_stride] = -INFINITY;
        }
    }
}

static bool has_any(const bool *marks, int64_t count)
{
    for (int64_t n = 0; n < count; n++)
        if (marks[n])
            return true;
    return false;
}

/* Words of a causal model see none behind them: a cut that takes away nothing is a mistake. */
static bool check_cut(const struct text_model_settings *model, const struct what_if_cut *cut,
                      int64_t tokens, struct attn_error *error)
{
    if (model->kind == MODEL_BERT || !has_any(cut->queries, tokens) || !has_any(cut->keys, tokens))
        return true;
    bool key = false;
    for (int64_t t = 0; t < tokens; t++) {
        key = key || cut->keys[t];
        if (cut->queries[t] && key)
            return true;
    }
    return attn_error_set(error,
                          "nothing to cut: in a %s a word sees itself and those before it, and "
                          "here every query stands before its key",
                          model->kind == MODEL_GPT2 ? "GPT-2" : "Llama");
}

static void mark(const struct what_if_change *change, const struct look_head *heads, size_t count,
                 bool *marks)
{
    for (size_t n = 0; n < count; n++)
        for (int64_t layer = 0; layer < change->layers; layer++)
            for (int64_t head = 0; head < change->heads; head++)
                if ((heads[n].layer == LOOK_MEAN || heads[n].layer == layer) &&
                    (heads[n].head == LOOK_MEAN || heads[n].head == head))
                    marks[layer * change->heads + head] = true;
}

static struct token_set fill_set(const bool *members, int64_t tokens, int32_t *before)
{
    before[0] = 0;
    for (int64_t t = 0; t < tokens; t++)
        before[t + 1] = before[t] + members[t];
    return (struct token_set){before};
}

static void fill_layers(struct what_if_change *change)
{
    for (int64_t layer = 0; layer < change->layers; layer++) {
        const bool *off = change->heads_off + layer * change->heads;
        const bool *cut = change->heads_cut + layer * change->heads;
        const bool has_off = has_any(off, change->heads);
        const bool has_cut = change->cut_count > 0 && has_any(cut, change->heads);
        change->layer_cuts[layer] = (struct layer_cut){change, cut};
        change->changes[layer] = (struct attention_change){
            .change_scores = has_cut ? cut_tile : NULL,
            .user = &change->layer_cuts[layer],
            .heads_off = has_off ? off : NULL,
        };
        change->is_changed[layer] = has_off || has_cut;
    }
}

static bool allocate(struct what_if_change *change)
{
    const size_t layers = (size_t)change->layers, heads = (size_t)change->heads;
    size_t numbers;
    if (!attn_checked_size_multiply(2 * change->cut_count, (size_t)change->tokens + 1, &numbers))
        return false;
    change->heads_off = calloc(layers, heads * sizeof(bool));
    change->heads_cut = calloc(layers, heads * sizeof(bool));
    change->layer_cuts = calloc(layers, sizeof *change->layer_cuts);
    change->changes = calloc(layers, sizeof *change->changes);
    change->is_changed = calloc(layers, sizeof(bool));
    change->cuts = calloc(change->cut_count + 1, sizeof *change->cuts);
    change->numbers = calloc(numbers + 1, sizeof *change->numbers);
    return change->heads_off && change->heads_cut && change->layer_cuts && change->changes &&
           change->is_changed && change->cuts && change->numbers;
}

bool what_if_change_create(struct what_if_change **change, const struct what_if *what_if,
                           const struct text_model_settings *model, const struct encoding *encoding,
                           struct attn_error *error)
{
    *change = NULL;
    if (!look_heads_check(what_if->ablated, what_if->ablated_count, model, error) ||
        !look_heads_check(what_if->where, what_if->where_count, model, error))
        return false;
    for (size_t n = 0; n < what_if->cut_count; n++)
        if (!check_cut(model, &what_if->cuts[n], (int64_t)encoding->token_count, error))
            return false;

    struct what_if_change *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    made->layers = model->layers;
    made->heads = model->heads;
    made->tokens = (int64_t)encoding->token_count;
    made->cut_count = what_if->cut_count;
    if (!allocate(made)) {
        what_if_change_destroy(made);
        return attn_error_memory(error);
    }
    static const struct look_head everywhere = {LOOK_MEAN, LOOK_MEAN};
    mark(made, what_if->ablated, what_if->ablated_count, made->heads_off);
    mark(made, what_if->where_count > 0 ? what_if->where : &everywhere,
         what_if->where_count > 0 ? what_if->where_count : 1, made->heads_cut);
    int32_t *numbers = made->numbers;
    for (size_t n = 0; n < made->cut_count; n++, numbers += 2 * (made->tokens + 1))
        made->cuts[n] = (struct token_cut){
            .queries = fill_set(what_if->cuts[n].queries, made->tokens, numbers),
            .keys = fill_set(what_if->cuts[n].keys, made->tokens, numbers + made->tokens + 1),
        };
    fill_layers(made);
    *change = made;
    return true;
}

void what_if_change_destroy(struct what_if_change *change)
{
    if (!change)
        return;
    free(change->heads_off);
    free(change->heads_cut);
    free(change->layer_cuts);
    free(change->changes);
    free(change->is_changed);
    free(change->cuts);
    free(change->numbers);
    free(change);
}

const struct attention_change *what_if_change_of(void *change, int64_t layer)
{
    const struct what_if_change *made = change;
    return made->is_changed[layer] ? &made->changes[layer] : NULL;
}
