/* change_scores and key_range: the calls they get, and that they say the same as a setting of the
 * same meaning. "The same" means the same bits. */
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/attention_sequences.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { HEADS = 4, KEY_HEADS = 2, QUERIES = 41, KEYS = 203, D_QK = 5, D_V = 6 };
static const struct attention_sizes usual = {2, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V};

/* Query i keeps the keys i + offset − left ≤ j ≤ i + offset + right. */
struct window {
    int64_t offset, left, right;
};

static void window_scores(void *user, const attn_score_tile *tile)
{
    const struct window *window = user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++) {
            int64_t distance = tile->key + j - (tile->query + i + window->offset);
            if (distance < -window->left || distance > window->right)
                tile->scores[i * tile->query_stride + j * tile->key_stride] = -INFINITY;
        }
}

static void window_range(void *user, int64_t sequence, int64_t head, int64_t query, int64_t queries,
                         int64_t *begin, int64_t *end)
{
    const struct window *window = user;
    (void)sequence;
    (void)head;
    int64_t first = query + window->offset - window->left;
    int64_t last = query + queries - 1 + window->offset + window->right;
    *begin = first > *begin ? first : *begin;
    *end = last + 1 < *end ? last + 1 : *end;
}

/* A causal mask and a window in C are those of params, and a range beside them only skips. */
static void windows_by_callback(attn_context *context)
{
    static struct window windows[] = {{0, KEYS, 0},  {150, KEYS, 0}, {90, 40, 0},
                                      {100, 17, 23}, {-10, 3, 5},    {20, -4, 60}};
    for (size_t n = 0; n < COUNT(windows); n++)
        for (int skipping = 0; skipping < 2; skipping++) {
            struct attention_problem problem, called;
            struct attention_result expected, result;
            if (!test_takes_one_in(5))
                continue;
            attention_make(&problem, &usual, 1);
            attention_add_bias(&problem, (int64_t[]){1, HEADS, QUERIES, KEYS}, 2);
            attention_copy(&problem, &called);
            problem.params.alignment = ATTN_ALIGN_OFFSET;
            problem.params.offset = windows[n].offset;
            problem.params.causal = windows[n].right == 0;
            problem.params.window_right =
                windows[n].right == 0 ? ATTN_WINDOW_OPEN : windows[n].right;
            problem.params.window_left =
                windows[n].left == KEYS ? ATTN_WINDOW_OPEN : windows[n].left;
            called.params.change_scores = window_scores;
            called.params.key_range = skipping ? window_range : NULL;
            called.params.callback_user = &windows[n];
            attention_solve(context, &problem, &expected);
            attention_solve(context, &called, &result);
            test_context("window %zu, skipping %d", n, skipping);
            CHECK_SAME_RESULT(&result, &expected);
            CHECK_RESULT(&called, &result);
            guarded_release_all();
        }
}

/* A number for each place, so that a callback told a wrong place is found out. */
static float place_score(int64_t sequence, int64_t head, int64_t query, int64_t key)
{
    uint64_t place = (uint64_t)(((sequence * 31 + head) * 1009 + query) * 1009 + key);
    struct random_source source = {place};
    return random_float(&source, -4, 4);
}

static void replace_scores(void *user, const attn_score_tile *tile)
{
    (void)user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++)
            tile->scores[i * tile->query_stride + j * tile->key_stride] =
                place_score(tile->sequence, tile->head, tile->query + i, tile->key + j);
}

/* Scores that come from the callback alone are those of a bias on products of 0: with batches, and
 * with packed sequences, whose positions count from their begins. */
static void places_of_scores(attn_context *context)
{
    static const int64_t query_lengths[] = {7, 17, 0, 15}, key_lengths[] = {99, 1, 30, 70};
    for (int packed = 0; packed < 2; packed++) {
        struct attention_problem by_bias, called;
        struct attention_result expected, result;
        struct attention_sizes sizes = usual;
        sizes.batch = packed ? 1 : 2;
        attention_make(&by_bias, &sizes, 3);
        tensor_fill(&by_bias.q, 0);
        by_bias.params.causal = 1;
        by_bias.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
        if (packed)
            attention_add_sequences(&by_bias, COUNT(query_lengths), query_lengths, key_lengths);
        attention_copy(&by_bias, &called);
        called.params.change_scores = replace_scores;
        attention_add_bias(&by_bias, (int64_t[]){sizes.batch, HEADS, QUERIES, KEYS}, 0);
        for (int64_t b = 0; b < sizes.batch; b++)
            for (int64_t h = 0; h < HEADS; h++)
                for (int64_t i = 0; i < QUERIES; i++)
                    for (int64_t j = 0; j < KEYS; j++) {
                        struct reference_sequence sequence =
                            reference_sequence_of(&by_bias.params, b, i, QUERIES, KEYS);
                        float score = sequence.index < 0
                                          ? 0
                                          : place_score(sequence.index, h, i - sequence.query_begin,
                                                        j - sequence.key_begin);
                        tensor_set(&by_bias.bias, b, h, i, j, score);
                    }
        attention_solve(context, &by_bias, &expected);
        attention_solve(context, &called, &result);
        test_context("packed %d", packed);
        CHECK_SAME_RESULT(&result, &expected);
        guarded_release_all();
    }
}

static void bend_scores(void *user, const attn_score_tile *tile)
{
    const float *factor = user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++) {
            float *score = &tile->scores[i * tile->query_stride + j * tile->key_stride];
            *score = (tile->query + i + tile->key + j) % 5 == 0 ? -INFINITY : *score * *factor;
        }
}

/* It comes after cap, bias and ALiBi; what masks exclude stays excluded whatever it does. */
static void among_all_other_settings(attn_context *context)
{
    static const float slopes[HEADS] = {0.5f, 0.25f, 0.125f, 0.0625f};
    static const float sinks[HEADS] = {0.5f, -INFINITY, 3, -1};
    static const int64_t lengths[] = {KEYS, 150}, prefixes[] = {9, 0};
    static float factor = 0.5f;
    static attn_score_callback *const callbacks[] = {bend_scores, replace_scores};
    for (size_t n = 0; n < COUNT(callbacks); n++) {
        struct attention_problem problem;
        struct attention_result result;
        attention_make(&problem, &usual, 4);
        attention_add_keep(&problem, (int64_t[]){2, HEADS, QUERIES, KEYS}, 5, 5);
        attention_add_bias(&problem, (int64_t[]){2, HEADS, QUERIES, KEYS}, 6);
        tensor_set(&problem.bias, 1, 2, 3, 4, -INFINITY);
        attention_add_documents(&problem, 150, 7);
        problem.params.causal = 1;
        problem.params.alignment = ATTN_ALIGN_OFFSET;
        problem.params.offset = 120;
        problem.params.window_left = 110;
        problem.params.key_lengths = lengths;
        problem.params.prefix_lengths = prefixes;
        problem.params.alibi_slopes = slopes;
        problem.params.sinks = sinks;
        problem.params.soft_cap = 5;
        problem.params.change_scores = callbacks[n];
        problem.params.callback_user = &factor;
        attention_solve(context, &problem, &result);
        test_context("callback %zu", n);
        CHECK_RESULT(&problem, &result);
        guarded_release_all();
    }
}

static void fixed_range(void *user, int64_t sequence, int64_t head, int64_t query, int64_t queries,
                        int64_t *begin, int64_t *end)
{
    const int64_t *limits = user;
    (void)sequence;
    (void)head;
    CHECK(*begin == 0 && *end == KEYS && query >= 0 && queries > 0 && query + queries <= QUERIES);
    *begin = limits[0];
    *end = limits[1];
}

/* A range alone excludes, to the key; what it names beyond the keys there are counts for nothing.
 */
static void ranges_alone(attn_context *context)
{
    static const int64_t prefixes[] = {10, 90};
    static int64_t ranges[][2] = {{0, KEYS}, {5, 77},          {97, 98},
                                  {-50, 31}, {190, KEYS + 99}, {30, 30},
                                  {77, 5},   {KEYS, KEYS + 1}, {INT64_MIN, INT64_MAX}};
    for (size_t n = 0; n < COUNT(ranges); n++)
        for (int prefixed = 0; prefixed < 2; prefixed++) {
            struct attention_problem by_keep, called;
            struct attention_result expected, result;
            attention_make(&by_keep, &usual, 8);
            if (prefixed) {
                by_keep.params.window_left = 20;
                by_keep.params.prefix_lengths = prefixes;
            }
            attention_copy(&by_keep, &called);
            called.params.key_range = fixed_range;
            called.params.callback_user = ranges[n];
            attention_add_keep(&by_keep, (int64_t[]){1, 1, 1, KEYS}, 0, INT64_C(1) << 62);
            for (int64_t j = 0; j < KEYS; j++) {
                bool kept = j >= ranges[n][0] && j < ranges[n][1];
                tensor_set(&by_keep.keep, 0, 0, 0, j, kept);
                for (int64_t h = 0; h < KEY_HEADS && !kept; h++) {
                    tensor_set(&called.k, 1, h, j, 0, NAN);
                    tensor_set(&called.v, 1, h, j, 0, INFINITY);
                }
            }
            attention_solve(context, &by_keep, &expected);
            attention_solve(context, &called, &result);
            test_context("range %zu, prefix %d", n, prefixed);
            CHECK_SAME_RESULT(&result, &expected);
            guarded_release_all();
        }
}

/* How many scores a callback has seen, and that its tiles lie within the sequence. */
struct census {
    int64_t queries, keys, scores;
};

static void count_scores(void *user, const attn_score_tile *tile)
{
    struct census *census = user;
    CHECK(tile->query >= 0 && tile->queries > 0 && tile->query + tile->queries <= census->queries);
    CHECK(tile->key >= 0 && tile->keys > 0 && tile->key + tile->keys <= census->keys);
    census->scores += tile->queries * tile->keys;
}

/* Blocks that no query keeps are never computed: what is, is at most what a row keeps, and at its
 * edges a block of keys and as many keys as a panel has queries. */
static void what_nobody_keeps_is_not_computed(attn_context *context)
{
    enum { LENGTH = 960, RUN = 120, MARGIN = 96 + 64 };
    static int64_t documents[LENGTH];
    for (int64_t i = 0; i < LENGTH; i++)
        documents[i] = i / RUN;
    static const char *const names[] = {"causal", "window", "documents", "lengths", "prefix"};
    static const int64_t lengths[] = {30}, prefixes[] = {40};
    const int64_t kept_a_row[] = {LENGTH / 2, 41, RUN, 30, 41 + 40};
    for (int kind = 0; kind < (int)COUNT(names); kind++) {
        struct attention_problem problem;
        attention_make(&problem, &(struct attention_sizes){1, 1, 1, LENGTH, LENGTH, 2, 2}, 9);
        attn_params *params = &problem.params;
        struct census census = {LENGTH, LENGTH, 0};
        params->change_scores = count_scores;
        params->callback_user = &census;
        if (kind == 0)
            params->causal = 1;
        if (kind == 1 || kind == 4)
            params->window_left = params->window_right = 20;
        if (kind == 2)
            params->query_documents = params->key_documents = documents;
        if (kind == 3)
            params->key_lengths = lengths;
        if (kind == 4)
            params->prefix_lengths = prefixes;
        attn_tensor o = tensor_allocate(ATTN_F32, 1, 1, LENGTH, 2, LAYOUT_PACKED, GUARD_BEHIND);
        test_context("%s", names[kind]);
        CHECK_EQUAL(attn_forward(context, params, &problem.q, &problem.k, &problem.v, &o, NULL), 0);
        CHECK(census.scores >= LENGTH * kept_a_row[kind] - LENGTH * 42);
        CHECK(census.scores <= LENGTH * (kept_a_row[kind] + MARGIN));
        guarded_release_all();
    }
}

static void on_several_threads(attn_isa isa)
{
    static struct window window = {100, 60, 11};
    struct attention_problem problem;
    struct attention_result one, many;
    attention_make(&problem, &usual, 10);
    problem.params.change_scores = window_scores;
    problem.params.key_range = window_range;
    problem.params.callback_user = &window;
    for (int threads = 1; threads <= 4; threads++) {
        attn_context *context = isa_context(isa, threads);
        attention_solve(context, &problem, threads == 1 ? &one : &many);
        attn_context_destroy(context);
        test_context("%d threads", threads);
        if (threads > 1)
            CHECK_SAME_RESULT(&many, &one);
    }
}

int main(void)
{
    isa_each_context("windows by callback", windows_by_callback);
    isa_each_context("places of scores", places_of_scores);
    isa_each_context("among all other settings", among_all_other_settings);
    isa_each_context("ranges alone", ranges_alone);
    isa_each_context("what nobody keeps is not computed", what_nobody_keeps_is_not_computed);
    isa_each("on several threads", on_several_threads);
    return test_finish();
}
