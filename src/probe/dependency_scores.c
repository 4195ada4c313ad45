#include "probe/dependency_scores.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { RELATION_LIMIT = 1000, OFFSETS = 2 * DEPENDENCY_REACH + 1 };

bool dependency_links_create(struct dependency_links *links, size_t words, struct attn_error *error)
{
    *links = (struct dependency_links){.strongest = calloc(words, sizeof *links->strongest)};
    bool done = links->strongest != NULL;
    for (int direction = 0; direction < DEPENDENCY_DIRECTIONS; direction++) {
        links->found[direction] = calloc(words, sizeof *links->found[direction]);
        done = done && links->found[direction];
    }
    if (done)
        return true;
    dependency_links_release(links);
    return attn_error_memory(error);
}

void dependency_links_release(struct dependency_links *links)
{
    for (int direction = 0; direction < DEPENDENCY_DIRECTIONS; direction++)
        free(links->found[direction]);
    free(links->strongest);
    *links = (struct dependency_links){0};
}

void dependency_links_begin(struct dependency_links *links, size_t words)
{
    links->words = words;
    for (size_t i = 0; i < words; i++) {
        links->strongest[i] = 0.0f;
        for (int direction = 0; direction < DEPENDENCY_DIRECTIONS; direction++)
            links->found[direction][i] = NO_LINK;
    }
}

void dependency_links_add(struct dependency_links *links, size_t i, const float *weights)
{
    int32_t *const to_head = links->found[DEPENDENCY_TO_HEAD];
    int32_t *const to_dependent = links->found[DEPENDENCY_TO_DEPENDENT];
    float strongest = 0.0f;
    for (size_t j = 0; j < links->words; j++) {
        if (j == i)
            continue;
        if (weights[j] > strongest) {
            strongest = weights[j];
            to_head[i] = (int32_t)j;
        }
        const bool equal = weights[j] == links->strongest[j] && (int32_t)i < to_dependent[j];
        if (weights[j] > links->strongest[j] || equal) {
            links->strongest[j] = weights[j];
            to_dependent[j] = (int32_t)i;
        }
    }
}

/* Relations in the order in which they come, while they are collected. */
struct collected {
    struct dependency_relation *relations; /* the first is all */
    size_t count, capacity;
};

/* The place of a word's relation, which may be new; 0 without memory. */
static size_t find_relation(struct collected *collected, const char *name)
{
    for (size_t n = 1; n < collected->count; n++)
        if (strcmp(collected->relations[n].name, name) == 0)
            return n;
    if (collected->count == collected->capacity) {
        const size_t capacity = 2 * collected->capacity;
        struct dependency_relation *grown = realloc(collected->relations, capacity * sizeof *grown);
        if (!grown)
            return 0;
        collected->relations = grown;
        collected->capacity = capacity;
    }
    collected->relations[collected->count] = (struct dependency_relation){.name = name};
    return collected->count++;
}

static int compare_relations(const void *a, const void *b)
{
    const struct dependency_relation *first = a, *second = b;
    if (first->words != second->words)
        return first->words > second->words ? -1 : 1;
    return strcmp(first->name, second->name);
}

static bool collect_relations(struct collected *collected, const struct treebank *treebank,
                              struct attn_error *error)
{
    collected->capacity = 64;
    collected->count = 1;
    collected->relations = calloc(collected->capacity, sizeof *collected->relations);
    if (!collected->relations)
        return attn_error_memory(error);
    for (size_t w = 0; w < treebank->word_count; w++) {
        if (treebank->words[w].head == 0)
            continue;
        const size_t place = find_relation(collected, treebank->words[w].relation);
        if (place == 0)
            return attn_error_memory(error);
        if (place > RELATION_LIMIT)
            return attn_error_set(error, "the treebank has more than %d relations", RELATION_LIMIT);
        collected->relations[0].words++;
        collected->relations[place].words++;
    }
    if (collected->relations[0].words == 0)
        return attn_error_set(error, "the treebank has no word that depends on another");
    qsort(collected->relations + 1, collected->count - 1, sizeof *collected->relations,
          compare_relations);
    return true;
}

/* relation_of, from the relations in their final order. */
static void assign_relations(struct dependency_scores *scores, struct collected *collected,
                             const struct treebank *treebank)
{
    for (size_t w = 0; w < treebank->word_count; w++) {
        const struct treebank_word *word = &treebank->words[w];
        scores->relation_of[w] =
            word->head == 0 ? 0 : (int32_t)find_relation(collected, word->relation);
    }
}

/* hits[relation][offset] += what each offset finds in a sentence. */
static void try_offsets(const struct dependency_scores *scores, const struct treebank *treebank,
                        const struct treebank_sentence *sentence, size_t *hits)
{
    const int64_t last = (int64_t)sentence->count - 1;
    for (int64_t i = 0; i <= last; i++) {
        const size_t w = sentence->first + (size_t)i;
        if (treebank->words[w].head == 0)
            continue;
        const int64_t head = (int64_t)treebank->words[w].head - 1;
        for (int n = 0; n < OFFSETS; n++) {
            const int64_t guess = i + n - DEPENDENCY_REACH;
            const bool correct = (guess < 0 ? 0 : guess > last ? last : guess) == head;
            hits[n] += correct;
            hits[scores->relation_of[w] * OFFSETS + n] += correct;
        }
    }
}

/* From the shortest offset on, so that the first of equal ones stays. */
static void choose_offset(struct dependency_relation *relation, const size_t *hits)
{
    relation->offset = -1;
    relation->offset_correct = hits[DEPENDENCY_REACH - 1];
    for (int length = 1; length <= DEPENDENCY_REACH; length++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const size_t correct = hits[DEPENDENCY_REACH + sign * length];
            if (correct > relation->offset_correct) {
                relation->offset = sign * length;
                relation->offset_correct = correct;
            }
        }
}

static bool find_baseline(struct dependency_scores *scores, const struct treebank *treebank,
                          struct attn_error *error)
{
    size_t *hits = calloc(scores->relation_count, OFFSETS * sizeof *hits);
    if (!hits)
        return attn_error_memory(error);
    for (size_t n = 0; n < treebank->sentence_count; n++)
        try_offsets(scores, treebank, &treebank->sentences[n], hits);
    for (size_t n = 0; n < scores->relation_count; n++)
        choose_offset(&scores->relations[n], hits + n * OFFSETS);
    free(hits);
    return true;
}

/* One counter a relation, head and direction. */
static bool make_counters(struct dependency_scores *scores, struct attn_error *error)
{
    size_t counters, total;
    if (!attn_checked_size_multiply((size_t)scores->layers, (size_t)scores->heads, &counters) ||
        !attn_checked_size_multiply(counters, DEPENDENCY_DIRECTIONS, &counters) ||
        !attn_checked_size_multiply(counters, scores->relation_count, &total))
        return attn_error_memory(error);
    scores->correct = calloc(total, sizeof *scores->correct);
    if (!scores->correct)
        return attn_error_memory(error);
    for (size_t n = 0; n < scores->relation_count; n++)
        scores->relations[n].correct = scores->correct + n * counters;
    return true;
}

bool dependency_scores_create(struct dependency_scores *scores, const struct treebank *treebank,
                              int64_t layers, int64_t heads, struct attn_error *error)
{
    *scores = (struct dependency_scores){.layers = layers, .heads = heads};
    struct collected collected = {0};
    bool done = collect_relations(&collected, treebank, error);
    scores->relations = collected.relations;
    scores->relation_count = collected.count;
    if (done) {
        scores->relation_of = calloc(treebank->word_count, sizeof *scores->relation_of);
        done = scores->relation_of || attn_error_memory(error);
    }
    if (done)
        assign_relations(scores, &collected, treebank);
    if (done && make_counters(scores, error) && find_baseline(scores, treebank, error))
        return true;
    dependency_scores_release(scores);
    return false;
}

void dependency_scores_release(struct dependency_scores *scores)
{
    free(scores->relations);
    free(scores->relation_of);
    free(scores->correct);
    *scores = (struct dependency_scores){0};
}

void dependency_scores_add(struct dependency_scores *scores, const struct treebank *treebank,
                           const struct treebank_sentence *sentence, int64_t layer, int64_t head,
                           const struct dependency_links *links)
{
    const size_t place = (size_t)(layer * scores->heads + head) * DEPENDENCY_DIRECTIONS;
    for (size_t i = 0; i < sentence->count; i++) {
        const size_t w = sentence->first + i;
        const int32_t relation = scores->relation_of[w];
        if (relation == 0)
            continue;
        for (size_t direction = 0; direction < DEPENDENCY_DIRECTIONS; direction++) {
            const int32_t found = links->found[direction][i];
            const bool correct = found != NO_LINK && (size_t)found + 1 == treebank->words[w].head;
            scores->relations[0].correct[place + direction] += correct;
            scores->relations[relation].correct[place + direction] += correct;
        }
    }
}

size_t dependency_best(const struct dependency_scores *scores,
                       const struct dependency_relation *relation, int64_t first, int64_t last)
{
    const size_t a_layer = (size_t)scores->heads * DEPENDENCY_DIRECTIONS;
    size_t best = (size_t)first * a_layer;
    for (size_t n = best; n < ((size_t)last + 1) * a_layer; n++)
        if (relation->correct[n] > relation->correct[best])
            best = n;
    return best;
}
