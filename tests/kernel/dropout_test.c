/* dropout and multiply: the random words are Philox4x32-10's, and every instruction set gives the
 * same factors. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"
#include "kernel/dropout_scalar.h"
#include "kernel/kernel.h"
#include "panel.h"

static const enum guard_side sides[] = {GUARD_BEHIND, GUARD_BEFORE};
static const uint64_t all_words = UINT64_C(1) << 32;

/* Published with Random123 (J. Salmon et al.), in tests/kat_vectors. */
static const struct known_answer {
    uint32_t counter[4];
    uint64_t seed;
    uint32_t words[4];
} known_answers[] = {
    {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     UINT64_MAX,
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     0x299f31d0a4093822,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void known_words(const void *argument)
{
    (void)argument;
    for (size_t i = 0; i < COUNT(known_answers); i++) {
        uint32_t words[4];
        attn_philox(known_answers[i].seed, known_answers[i].counter, words);
        test_context("answer %d", (int)i);
        for (int w = 0; w < 4; w++)
            CHECK_EQUAL(words[w], known_answers[i].words[w]);
    }
}

/* A word is known by the two thresholds between which it is dropped. */
static void known_words_are_found(const struct attn_kernels *kernels, int lanes)
{
    for (size_t i = 0; i < COUNT(known_answers); i++) {
        const struct known_answer *known = &known_answers[i];
        struct attn_dropout_place place = {
            .seed = known->seed, .head = known->counter[2], .batch = known->counter[3], .kept = 2};
        if (known->counter[0] > UINT32_MAX / 4)
            continue; /* beyond the last key */
        for (uint32_t w = 0; w < 4; w++)
            for (uint32_t lane = 0; lane < (uint32_t)lanes; lane++) {
                place.key = 4 * known->counter[0] + w;
                place.row = known->counter[1] - lane;
                float *factors = guarded_panel((size_t)lanes, GUARD_BEHIND);
                test_context("answer %d, word %d, lane %d of %d", (int)i, (int)w, (int)lane, lanes);
                place.threshold = known->words[w];
                kernels->dropout(&place, lanes, 1, factors);
                CHECK(factors[lane] == 2);
                place.threshold = (uint64_t)known->words[w] + 1;
                kernels->dropout(&place, lanes, 1, factors);
                CHECK(factors[lane] == 0);
                guarded_release_all();
            }
    }
}

/* The factor of one weight, from the definition: products of 64 bits and a running key. */
static float factor_of(const struct attn_dropout_place *place, uint32_t key, uint32_t row)
{
    uint32_t x[4] = {key >> 2, row, place->head, place->batch};
    uint64_t seed = place->seed;
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * x[0], b = UINT64_C(0xcd9e8d57) * x[2];
        uint32_t next[4] = {(uint32_t)(b >> 32 ^ x[1] ^ (uint32_t)seed), (uint32_t)b,
                            (uint32_t)(a >> 32 ^ x[3] ^ seed >> 32), (uint32_t)a};
        memcpy(x, next, sizeof x);
        uint32_t low = (uint32_t)seed + UINT32_C(0x9e3779b9);
        uint32_t high = (uint32_t)(seed >> 32) + UINT32_C(0xbb67ae85);
        seed = (uint64_t)high << 32 | low;
    }
    return x[key & 3] < place->threshold ? 0.0f : place->kept;
}

static void check_tile(const struct attn_kernels *kernels, const struct attn_dropout_place *place,
                       int lanes, int64_t keys, enum guard_side side)
{
    size_t count = (size_t)(keys * lanes);
    float *factors = guarded_panel(count, side), *expected = guarded_panel(count, side);
    for (int64_t i = 0; i < keys * lanes; i++)
        expected[i] = factor_of(place, place->key + (uint32_t)(i / lanes),
                                place->row + (uint32_t)(i % lanes));
    kernels->dropout(place, lanes, keys, factors);
    test_context("%d lanes, %d keys from %u, row %u, threshold %llx", lanes, (int)keys, place->key,
                 place->row, (unsigned long long)place->threshold);
    CHECK_SAME_BITS(factors, expected, count);
    guarded_release_all();
}

static void factors_are_the_same_everywhere(const struct attn_kernels *kernels, int lanes)
{
    const int64_t key_counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 95, 96};
    const uint32_t firsts[] = {0, 1, 2, 3, 96, 1001, UINT32_MAX - 1, UINT32_C(1) << 31};
    const uint64_t thresholds[] = {0,        1, UINT64_C(0x1999999a), all_words / 2, all_words - 1,
                                   all_words};
    struct random_source source = {1};
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(firsts); b++)
            for (size_t c = 0; c < COUNT(thresholds); c++) {
                if (!test_takes_one_in(7))
                    continue;
                const struct attn_dropout_place place = {
                    .seed = random_bits(&source),
                    .key = firsts[b],
                    .row = c == 0 ? UINT32_MAX - 2 : (uint32_t)random_bits(&source),
                    .head = (uint32_t)random_bits(&source),
                    .batch = (uint32_t)random_bits(&source),
                    .threshold = thresholds[c],
                    .kept = thresholds[c] == all_words ? INFINITY : 1.25f,
                };
                check_tile(kernels, &place, lanes, key_counts[a], sides[(a + b + c) % 2]);
            }
}

static void nothing_and_all_is_dropped(const struct attn_kernels *kernels, int lanes)
{
    struct attn_dropout_place place = {.seed = 5, .threshold = 0, .kept = 1};
    size_t count = (size_t)(96 * lanes);
    float *factors = guarded_panel(count, GUARD_BEHIND);
    kernels->dropout(&place, lanes, 96, factors);
    CHECK_ALL(factors, 1, count);
    place.threshold = all_words;
    place.kept = INFINITY; /* 1/(1 − 1) */
    kernels->dropout(&place, lanes, 96, factors);
    CHECK_ALL(factors, 0, count);
}

/* 96 keys and two rows of lanes at once are what they are in any pieces. */
static void pieces_make_the_whole(const struct attn_kernels *kernels, int lanes)
{
    const struct attn_dropout_place whole = {
        UINT64_C(0x123456789abcdef), 7, 11, 2, 3, all_words / 4, 4.0f / 3};
    float *all = guarded_panel((size_t)(96 * lanes), GUARD_BEHIND);
    kernels->dropout(&whole, lanes, 96, all);
    for (int64_t first = 0; first < 96;) {
        int64_t keys = first % 7 + 1 < 96 - first ? first % 7 + 1 : 96 - first;
        for (uint32_t shift = 0; shift < 3; shift++) {
            struct attn_dropout_place place = whole;
            place.key += (uint32_t)first;
            place.row += shift;
            float *part = guarded_panel((size_t)(keys * lanes), GUARD_BEHIND);
            kernels->dropout(&place, lanes, keys, part);
            test_context("keys %d to %d, rows from %u", (int)first, (int)(first + keys), shift);
            for (int64_t j = 0; j < keys; j++)
                CHECK_SAME_BITS(part + j * lanes, all + (first + j) * lanes + shift,
                                (size_t)lanes - shift);
        }
        first += keys;
        guarded_release_all();
        all = guarded_panel((size_t)(96 * lanes), GUARD_BEHIND);
        kernels->dropout(&whole, lanes, 96, all);
    }
}

static void as_many_are_dropped_as_asked(const struct attn_kernels *kernels, int lanes)
{
    int64_t dropped = 0, count = 0;
    float *factors = guarded_panel((size_t)(96 * lanes), GUARD_BEHIND);
    for (uint32_t head = 0; head < 64; head++) {
        const struct attn_dropout_place place = {9, 0, 0, head, 1, all_words / 10, 1};
        kernels->dropout(&place, lanes, 96, factors);
        for (int64_t i = 0; i < 96 * lanes; i++)
            dropped += factors[i] == 0;
        count += 96 * lanes;
    }
    /* Five standard deviations of a binomial distribution. */
    double expected = 0.1 * (double)count;
    CHECK_WITHIN((double)dropped, expected, 5 * sqrt(0.9 * expected));
}

static void multiplies_any_count(const struct attn_kernels *kernels)
{
    struct random_source source = {2};
    for (int64_t count = 0; count <= 3 * ATTN_MAX_LANES + 1; count++)
        for (size_t side = 0; side < COUNT(sides); side++) {
            float *x = random_panel(&source, count, sides[side]);
            float *factors = random_panel(&source, count, sides[side]);
            float *expected = guarded_panel((size_t)count, sides[side]);
            for (int64_t i = 0; i < count; i++)
                expected[i] = x[i] * factors[i];
            kernels->multiply(x, factors, count);
            test_context("%d numbers", (int)count);
            CHECK_SAME_BITS(x, expected, (size_t)count);
            guarded_release_all();
        }
}

int main(void)
{
    test_run(known_words, NULL, "known answers of Philox4x32-10");
    panel_each("known answers in every lane", known_words_are_found);
    panel_each("factors are the same everywhere", factors_are_the_same_everywhere);
    panel_each("nothing and all is dropped", nothing_and_all_is_dropped);
    panel_each("pieces make the whole", pieces_make_the_whole);
    panel_each("as many are dropped as asked", as_many_are_dropped_as_asked);
    kernels_each("multiplies any count", multiplies_any_count);
    return test_finish();
}
