#include "attention/exclusion.h"

#include <string.h>

#include "attention/document_blocks.h"
#include "attention/window.h"
#include "base/prefetch.h"

/* What the rows of a tile keep by their places: each row a run of keys and the prefix, all of them
 * within `called`. */
struct places {
    enum attn_exclusion kind;
    struct attn_key_span called;
};

static struct places places_of(const struct attn_problem *problem, const struct attn_tile *tile)
{
    const struct attn_sequence *sequence = tile->sequence;
    int64_t begin = tile->key, end = tile->key + tile->keys;
    int64_t last = tile->query + tile->rows - 1;
    struct places places = {.kind = ATTN_EXCLUDES_SOME};
    places.called = attn_called_range(problem, sequence, tile->head, tile->query, tile->rows);
    if (places.called.end <= begin || places.called.begin >= end) {
        places.kind = ATTN_EXCLUDES_ALL;
        return places;
    }

    /* The first row reaches least far right, the last row least far left. */
    int64_t all_begin = attn_window_begin(problem, sequence, last);
    int64_t all_end = attn_window_end(problem, sequence, tile->query);
    if (all_begin <= sequence->prefix || end <= sequence->prefix)
        all_begin = 0;
    if (all_end < sequence->prefix)
        all_end = sequence->prefix;
    if (all_begin < places.called.begin)
        all_begin = places.called.begin;
    if (all_end > places.called.end)
        all_end = places.called.end;
    if (all_begin <= begin && end <= all_end)
        places.kind = ATTN_EXCLUDES_NONE;
    else if (begin >= sequence->prefix &&
             (attn_window_end(problem, sequence, last) <= begin ||
              attn_window_begin(problem, sequence, tile->query) >= end))
        places.kind = ATTN_EXCLUDES_ALL;
    return places;
}

/* Bits begin..end−1 of a row of bits, as they fall into its word number `word`. */
static uint32_t bits_between(int64_t begin, int64_t end, int64_t word)
{
    begin -= 32 * word;
    end -= 32 * word;
    begin = begin < 0 ? 0 : begin > 32 ? 32 : begin;
    end = end < 0 ? 0 : end > 32 ? 32 : end;
    if (end <= begin)
        return 0;
    return (uint32_t)((UINT64_C(1) << end) - (UINT64_C(1) << begin));
}

static int64_t word_count(const struct attn_tile *tile)
{
    return (tile->keys + 31) / 32;
}

static void exclude_by_place(const struct attn_problem *problem, const struct attn_tile *tile,
                             struct attn_key_span called, uint32_t *words)
{
    const struct attn_sequence *sequence = tile->sequence;
    uint32_t prefix[ATTN_KEY_WORDS], outside[ATTN_KEY_WORDS];
    for (int64_t w = 0; w < word_count(tile); w++) {
        prefix[w] = bits_between(0, sequence->prefix - tile->key, w);
        outside[w] = ~bits_between(called.begin - tile->key, called.end - tile->key, w);
    }
    for (int64_t n = 0; n < tile->rows; n++) {
        int64_t begin = attn_window_begin(problem, sequence, tile->query + n) - tile->key;
        int64_t end = attn_window_end(problem, sequence, tile->query + n) - tile->key;
        for (int64_t w = 0; w < word_count(tile); w++) {
            uint32_t kept = bits_between(begin, end, w) | prefix[w];
            words[w * tile->lanes + n] |= ~kept | outside[w];
        }
    }
}

/* How the rows' documents meet those of the keys, as far as their ranges tell. */
static enum attn_exclusion documents_meet(const struct attn_problem *problem,
                                          const struct attn_tile *tile)
{
    if (!problem->query_documents)
        return ATTN_EXCLUDES_NONE;
    struct attn_document_range rows = attn_documents_range(
        attn_documents_of_rows(problem, tile->sequence, tile->query), tile->rows);
    struct attn_document_range keys =
        attn_documents_near(problem, tile->sequence, tile->key, tile->keys);
    if (rows.high < keys.low || keys.high < rows.low)
        return ATTN_EXCLUDES_ALL;
    if (rows.low == rows.high && keys.low == keys.high)
        return ATTN_EXCLUDES_NONE;
    return ATTN_EXCLUDES_SOME;
}

static void exclude_by_documents(const struct attn_problem *problem, const struct attn_tile *tile,
                                 uint32_t *words)
{
    const int64_t *rows = attn_documents_of_rows(problem, tile->sequence, tile->query);
    const int64_t *keys = attn_documents_of_keys(problem, tile->sequence, tile->key);
    uint32_t others[ATTN_KEY_WORDS] = {0};
    for (int64_t n = 0; n < tile->rows; n++) {
        /* Neighbours are mostly of one document. */
        if (n == 0 || rows[n] != rows[n - 1]) {
            memset(others, 0, sizeof others);
            for (int64_t t = 0; t < tile->keys; t++)
                others[t / 32] |= (uint32_t)(keys[t] != rows[n]) << t % 32;
        }
        for (int64_t w = 0; w < word_count(tile); w++)
            words[w * tile->lanes + n] |= others[w];
    }
}

/* The words of one row of keep. */
static void keep_words(const struct attn_kernels *kernels, const unsigned char *keep,
                       int64_t key_stride, int64_t keys, uint32_t *words)
{
    if (key_stride == 1) {
        kernels->exclusion_words(keep, keys, words);
        return;
    }
    memset(words, key_stride == 0 && !*keep ? 0xff : 0, ATTN_KEY_WORDS * sizeof *words);
    for (int64_t t = 0; key_stride != 0 && t < keys; t++)
        words[t / 32] |= (uint32_t)(keep[t * key_stride] == 0) << t % 32;
}

static void exclude_by_keep(const struct attn_kernels *kernels, const struct attn_problem *problem,
                            const struct attn_tile *tile, uint32_t *words)
{
    const attn_tensor *keep = &problem->keep;
    const struct attn_sequence *sequence = tile->sequence;
    const unsigned char *first =
        attn_address(keep, 1, sequence->batch, tile->head, sequence->query_begin + tile->query,
                     sequence->key_begin + tile->key);
    int64_t ahead = attn_tile_keys_ahead(tile);
    uint32_t row[ATTN_KEY_WORDS];
    for (int64_t n = 0; n < tile->rows; n++) {
        if (keep->stride[2] != 0 && keep->stride[3] == 1)
            attn_prefetch(first + n * keep->stride[2] + tile->keys, ahead);
        if (n == 0 || keep->stride[2] != 0)
            keep_words(kernels, first + n * keep->stride[2], keep->stride[3], tile->keys, row);
        for (int64_t w = 0; w < word_count(tile); w++)
            words[w * tile->lanes + n] |= row[w];
    }
}

static enum attn_exclusion kind_of(const struct attn_tile *tile, const uint32_t *words)
{
    uint32_t some = 0, left = 0;
    for (int64_t w = 0; w < word_count(tile); w++) {
        uint32_t used = bits_between(0, tile->keys, w);
        for (int64_t n = 0; n < tile->rows; n++) {
            some |= words[w * tile->lanes + n] & used;
            left |= ~words[w * tile->lanes + n] & used;
        }
    }
    return !left ? ATTN_EXCLUDES_ALL : some ? ATTN_EXCLUDES_SOME : ATTN_EXCLUDES_NONE;
}

void attn_tile_exclusions(const struct attn_kernels *kernels, const struct attn_problem *problem,
                          const struct attn_tile *tile, struct attn_exclusions *exclusions)
{
    struct places places = places_of(problem, tile);
    exclusions->kind = places.kind;
    if (places.kind == ATTN_EXCLUDES_ALL)
        return;
    enum attn_exclusion documents = documents_meet(problem, tile);
    if (documents == ATTN_EXCLUDES_ALL)
        exclusions->kind = ATTN_EXCLUDES_ALL;
    if (documents == ATTN_EXCLUDES_ALL ||
        (documents == places.kind && documents == ATTN_EXCLUDES_NONE && !problem->has_keep))
        return;

    uint32_t *words = exclusions->words;
    for (int64_t w = 0; w < word_count(tile); w++)
        for (int64_t n = 0; n < tile->lanes; n++)
            words[w * tile->lanes + n] = n < tile->rows ? 0 : UINT32_MAX;
    if (places.kind == ATTN_EXCLUDES_SOME)
        exclude_by_place(problem, tile, places.called, words);
    if (documents == ATTN_EXCLUDES_SOME)
        exclude_by_documents(problem, tile, words);
    if (problem->has_keep)
        exclude_by_keep(kernels, problem, tile, words);
    exclusions->kind = kind_of(tile, words);
}
