/* The kernels of inspect_kernels.h: lists of the largest scores, the sum that gives the entropy,
 * and sums of columns. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/inspect_kernels.h"
#include "kernel/kernel.h"
#include "panel.h"

static const int64_t key_counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 12, 33, 95, 96};

/* Lists of nothing yet. */
static struct attn_top_lists empty_lists(const struct attn_kernels *kernels, int lanes,
                                         int64_t count)
{
    const int64_t vector = kernels->vector_lanes, width = (count + vector - 1) / vector * vector;
    struct attn_top_lists top = {.count = count, .width = width};
    top.lists = guarded_panel((size_t)(lanes * 2 * width), GUARD_BEHIND);
    top.limits = filled_panel((size_t)lanes, -INFINITY);
    const int32_t no_key = -1;
    for (int64_t i = 0; i < lanes * 2 * width; i++)
        if (i / width % 2 == 0)
            top.lists[i] = -INFINITY;
        else
            memcpy(&top.lists[i], &no_key, sizeof no_key);
    return top;
}

/* The same by the definition, for one lane. */
struct list {
    float scores[ATTN_TOP_LIMIT];
    int32_t keys[ATTN_TOP_LIMIT];
    int64_t found;
};

static void insert(struct list *list, int64_t count, float s, int32_t key)
{
    int64_t place = list->found;
    while (place > 0 && list->scores[place - 1] < s)
        place--;
    if (place == count || !(s > -INFINITY))
        return;
    list->found += list->found < count;
    for (int64_t i = list->found - 1; i > place; i--) {
        list->scores[i] = list->scores[i - 1];
        list->keys[i] = list->keys[i - 1];
    }
    list->scores[place] = s;
    list->keys[place] = key;
}

static void check_lists(const struct attn_top_lists *top, const struct list *lists, int lanes)
{
    for (int n = 0; n < lanes; n++) {
        const float *scores = top->lists + n * 2 * top->width, *keys = scores + top->width;
        for (int64_t i = 0; i < top->count; i++) {
            int32_t key;
            memcpy(&key, &keys[i], sizeof key);
            const bool there = i < lists[n].found;
            CHECK_WITHIN(scores[i], there ? lists[n].scores[i] : -INFINITY, 0);
            CHECK_EQUAL(key, there ? lists[n].keys[i] : -1);
        }
        CHECK_WITHIN(top->limits[n], scores[top->count - 1], 0);
    }
}

/* Several blocks of scores of few and of many values, in which lanes begin early and late. */
static void lists_are_those_of_the_definition(const struct attn_kernels *kernels, int lanes)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 40, 64};
    struct random_source source = {1};
    for (size_t a = 0; a < COUNT(counts); a++)
        for (size_t b = 0; b < COUNT(key_counts); b++)
            for (int values = 2; values <= 2000; values *= 10) {
                if (!test_takes_one_in(11))
                    continue;
                struct list lists[ATTN_MAX_LANES];
                memset(lists, 0, sizeof lists);
                struct attn_top_lists top = empty_lists(kernels, lanes, counts[a]);
                const bool sparse = (a + b) % 3 == 0;
                const int64_t keys = key_counts[b];
                float *s = guarded_panel((size_t)(keys * lanes), GUARD_BEHIND);
                test_context("%d lanes, lists of %d, blocks of %d keys, %d values", lanes,
                             (int)counts[a], (int)keys, values);
                int64_t first = 2000000000;
                for (int block = 0; block < 6; block++, first += keys) {
                    for (int64_t i = 0; i < keys * lanes; i++) {
                        const int64_t n = i % lanes;
                        const bool kept = sparse ? random_integer(&source, 0, 20) == 0
                                                 : random_integer(&source, 0, 5) > 0;
                        const bool excluded = n % 5 > block || !kept;
                        s[i] =
                            excluded ? -INFINITY : (float)random_integer(&source, -values, values);
                        insert(&lists[n], counts[a], s[i], (int32_t)(first + i / lanes));
                    }
                    kernels->inspect->select(s, lanes, keys, first, &top);
                }
                check_lists(&top, lists, lanes);
                guarded_release_all();
            }
}

/* +inf is the largest. NaN enters no list, though its lane may then leave others out, +inf too; and
 * other lanes do not notice it. */
static void lists_beside_no_numbers(const struct attn_kernels *kernels, int lanes)
{
    enum { KEYS = 40 };
    for (int n = 0; n < 2 * lanes; n++) {
        const int lane = n / 2;
        const bool has_nan = n % 2;
        struct random_source source = {2};
        float *s = random_panel(&source, KEYS * lanes, GUARD_BEHIND);
        float *strange = panel_copy(s, KEYS, lanes);
        for (int64_t j = 0; j < KEYS; j++)
            if (has_nan || j == 17)
                strange[j * lanes + lane] = j == 17 ? INFINITY : NAN;
        struct attn_top_lists clean = empty_lists(kernels, lanes, 5);
        struct attn_top_lists broken = empty_lists(kernels, lanes, 5);
        for (int64_t j = 0; j < KEYS; j += 20) {
            kernels->inspect->select(s + j * lanes, lanes, 20, j, &clean);
            kernels->inspect->select(strange + j * lanes, lanes, 20, j, &broken);
        }
        test_context("lane %d of %d, NaN %d", lane, lanes, has_nan);
        for (int other = 0; other < lanes; other++) {
            const float *list = broken.lists + other * 2 * broken.width;
            if (other != lane) {
                CHECK_SAME_BITS(list, clean.lists + other * 2 * clean.width, 5);
                continue;
            }
            int32_t key;
            memcpy(&key, list + broken.width, sizeof key);
            if (list[0] == INFINITY)
                CHECK_EQUAL(key, 17);
            else
                CHECK(has_nan && list[0] == -INFINITY);
            for (int i = 1; has_nan && i < 5; i++)
                CHECK_WITHIN(list[i], -INFINITY, 0);
        }
        guarded_release_all();
    }
}

/* Lanes that are no row's stay closed, whatever passes by, and the others are as without them. */
static void lanes_of_no_row(const struct attn_kernels *kernels, int lanes)
{
    enum { KEYS = 96, BLOCKS = 3, COUNT_OF_LIST = 5 };
    struct random_source source = {3};
    struct attn_top_lists all = empty_lists(kernels, lanes, COUNT_OF_LIST);
    struct attn_top_lists some = empty_lists(kernels, lanes, COUNT_OF_LIST);
    for (int n = 1; n < lanes; n += 2)
        some.limits[n] = INFINITY;
    for (int64_t block = 0; block < BLOCKS; block++) {
        float *s = random_panel(&source, KEYS * lanes, GUARD_BEHIND);
        kernels->inspect->select(s, lanes, KEYS, block * KEYS, &all);
        kernels->inspect->select(s, lanes, KEYS, block * KEYS, &some);
        for (int n = 0; n < lanes; n++) {
            test_context("%d lanes, lane %d, block %d", lanes, n, (int)block);
            CHECK_WITHIN(some.limits[n], n % 2 ? INFINITY : all.limits[n], 0);
            if (n % 2 == 0)
                CHECK_SAME_BITS(some.lists + n * 2 * some.width, all.lists + n * 2 * all.width,
                                COUNT_OF_LIST);
        }
    }
    guarded_release_all();
}

/* The state that blocks of scores pass by. */
struct sums {
    float *s, *m, *m_new, *l, *l_rest, *t, *t_rest, *output;
};

static struct sums begin_sums(int lanes, int64_t keys)
{
    const size_t n = (size_t)lanes;
    return (struct sums){guarded_panel((size_t)keys * n, GUARD_BEHIND),
                         filled_panel(n, -INFINITY),
                         filled_panel(n, -INFINITY),
                         filled_panel(n, 0),
                         filled_panel(n, 0),
                         filled_panel(n, 0),
                         filled_panel(n, 0),
                         filled_panel(3 * n, 1)};
}

static void take(const struct attn_kernels *kernels, struct sums *sums, const float *s, int lanes,
                 int64_t keys, bool with_entropy)
{
    memcpy(sums->s, s, (size_t)(keys * lanes) * sizeof *s);
    memcpy(sums->m_new, sums->m, (size_t)lanes * sizeof *s);
    kernels->raise_maximum(s, lanes, keys, sums->m_new);
    if (with_entropy)
        kernels->inspect->softmax_entropy(sums->s, lanes, keys, sums->m, sums->m_new, sums->l,
                                          sums->l_rest, sums->t, sums->t_rest, sums->output, 3);
    else {
        kernels->inspect->entropy(sums->s, lanes, keys, sums->m, sums->m_new, sums->l, sums->l_rest,
                                  sums->t, sums->t_rest);
        kernels->softmax(sums->s, lanes, keys, sums->m, sums->m_new, sums->l, sums->l_rest,
                         sums->output, 3);
    }
    memcpy(sums->m, sums->m_new, (size_t)lanes * sizeof *s);
}

/* l and t of all scores of a lane in double, and the entropy from them. */
static double right_entropy(const float *scores, int lanes, int64_t count, int lane)
{
    double m = -INFINITY, l = 0, t = 0;
    for (int64_t j = 0; j < count; j++)
        if (scores[j * lanes + lane] > m)
            m = scores[j * lanes + lane];
    for (int64_t j = 0; j < count && m > -INFINITY; j++) {
        double distance = scores[j * lanes + lane] - m;
        if (distance == -INFINITY)
            continue;
        l += exp(distance);
        t += exp(distance) * distance;
    }
    return l > 0 ? log(l) - t / l : 0;
}

static void entropy_is_that_of_the_scores(const struct attn_kernels *kernels, int lanes)
{
    enum { BLOCKS = 5 };
    const float bases[] = {0, 95, -95, 9000};
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (size_t b = 0; b < COUNT(bases); b++) {
            const int64_t keys = key_counts[a];
            struct random_source source = {(uint64_t)(keys + 1)};
            float *s = random_panel(&source, BLOCKS * keys * lanes, GUARD_BEHIND);
            for (int64_t i = 0; i < BLOCKS * keys * lanes; i++) {
                /* Maxima move in most blocks; some lanes begin late, the last has no key. */
                const int64_t block = i / (keys * lanes), n = i % lanes;
                s[i] = bases[b] + 4 * s[i] + 3 * (float)block;
                if (n == lanes - 1 || n % 4 > block || random_integer(&source, 0, 6) == 0)
                    s[i] = -INFINITY;
            }
            struct sums fused = begin_sums(lanes, keys), apart = begin_sums(lanes, keys);
            for (int64_t block = 0; block < BLOCKS; block++) {
                const float *scores = s + block * keys * lanes;
                take(kernels, &fused, scores, lanes, keys, true);
                take(kernels, &apart, scores, lanes, keys, false);
                test_context("%d lanes, %d keys, base %g, block %d", lanes, (int)keys,
                             (double)bases[b], (int)block);
                CHECK_SAME_BITS(fused.s, apart.s, (size_t)(keys * lanes));
                CHECK_SAME_BITS(fused.l, apart.l, (size_t)lanes);
                CHECK_SAME_BITS(fused.l_rest, apart.l_rest, (size_t)lanes);
                CHECK_SAME_BITS(fused.t, apart.t, (size_t)lanes);
                CHECK_SAME_BITS(fused.t_rest, apart.t_rest, (size_t)lanes);
                CHECK_SAME_BITS(fused.output, apart.output, (size_t)(3 * lanes));
            }
            for (int n = 0; n < lanes; n++) {
                double l = (double)fused.l[n] + fused.l_rest[n];
                double t = (double)fused.t[n] + fused.t_rest[n];
                CHECK_WITHIN(l > 0 ? log(l) - t / l : 0, right_entropy(s, lanes, BLOCKS * keys, n),
                             2e-6);
            }
            guarded_release_all();
        }
}

static void halves_have_the_same_bits(const struct attn_kernels *kernels)
{
    const int lanes = 2 * kernels->vector_lanes;
    for (size_t a = 0; a < COUNT(key_counts); a++) {
        const int64_t keys = key_counts[a];
        struct random_source source = {7};
        float *s = random_panel(&source, keys * lanes, GUARD_BEHIND);
        float *inverse_l = random_panel(&source, lanes, GUARD_BEHIND);
        struct sums two = begin_sums(lanes, keys);
        float *columns = filled_panel((size_t)(keys * lanes), 0);
        take(kernels, &two, s, lanes, keys, true);
        kernels->inspect->add_weights(s, lanes, keys, two.m, inverse_l, columns);
        for (int half = 0; half < 2; half++) {
            struct sums one = begin_sums(lanes / 2, keys);
            float *scores = panel_half(s, keys, lanes, half);
            float *half_columns = filled_panel((size_t)(keys * lanes / 2), 0);
            take(kernels, &one, scores, lanes / 2, keys, true);
            kernels->inspect->add_weights(scores, lanes / 2, keys, one.m,
                                          panel_half(inverse_l, 1, lanes, half), half_columns);
            test_context("%d keys, half %d", (int)keys, half);
            CHECK_SAME_HALF(one.t, two.t, 1, lanes, half);
            CHECK_SAME_HALF(one.t_rest, two.t_rest, 1, lanes, half);
            CHECK_SAME_HALF(half_columns, columns, keys, lanes, half);
        }
        guarded_release_all();
    }
}

/* A lane without a key, one whose weights are no numbers, and one that is no query's: an excluded
 * key takes nothing from them. */
static void columns_take_weights(const struct attn_kernels *kernels, int lanes)
{
    for (size_t a = 0; a < COUNT(key_counts); a++)
        for (int strange = 0; strange < 2; strange++) {
            const int64_t keys = key_counts[a];
            struct random_source source = {(uint64_t)a};
            float *s = random_panel(&source, keys * lanes, GUARD_BEHIND);
            float *m = filled_panel((size_t)lanes, 2), *inverse_l = filled_panel((size_t)lanes, 0);
            float *sums = random_panel(&source, keys * lanes, GUARD_BEHIND);
            double *right = guarded_doubles((size_t)(keys * lanes));
            double *error = guarded_doubles((size_t)(keys * lanes));
            for (int n = 0; n < lanes; n++)
                inverse_l[n] = 0.5f / (float)(n + 1);
            if (strange) {
                m[0] = -INFINITY;
                inverse_l[0] = 0;
                inverse_l[lanes - 2] = NAN;
                inverse_l[lanes - 1] = 0;
            }
            for (int64_t i = 0; i < keys * lanes; i++) {
                const int64_t n = i % lanes;
                if (i / lanes % 3 == 0 || (strange && n == 0))
                    s[i] = -INFINITY;
                if (strange && n == lanes - 1)
                    s[i] = i % 2 ? NAN : INFINITY;
                const bool nothing = s[i] == -INFINITY || inverse_l[n] == 0;
                double weight = nothing ? 0 : exp((double)s[i] - m[n]) * inverse_l[n];
                right[i] = sums[i] + weight;
                error[i] = nothing ? 0 : 0x1p-22 * (fabs(sums[i]) + weight);
            }
            kernels->inspect->add_weights(s, lanes, keys, m, inverse_l, sums);
            test_context("%d lanes, %d keys, strange %d", lanes, (int)keys, strange);
            CHECK_NEAR(sums, right, 1, error, (size_t)(keys * lanes));
            guarded_release_all();
        }
}

static void lanes_add_up(const struct attn_kernels *kernels, int lanes)
{
    struct random_source source = {4};
    for (size_t a = 0; a < COUNT(key_counts); a++) {
        const int64_t keys = key_counts[a];
        float *sums = random_panel(&source, keys * lanes, GUARD_BEHIND);
        double *totals = guarded_doubles((size_t)keys), *right = guarded_doubles((size_t)keys);
        for (int64_t j = 0; j < keys; j++) {
            totals[j] = right[j] = 1e6 + (double)j;
            for (int n = 0; n < lanes; n++)
                right[j] += sums[j * lanes + n];
        }
        kernels->inspect->add_lanes(sums, lanes, keys, totals);
        test_context("%d lanes, %d keys", lanes, (int)keys);
        for (int64_t j = 0; j < keys; j++)
            CHECK_WITHIN(totals[j], right[j], 2 * lanes * 0x1p-22);
        guarded_release_all();
    }
}

int main(void)
{
    panel_each("lists are those of the definition", lists_are_those_of_the_definition);
    panel_each("lists beside no numbers", lists_beside_no_numbers);
    panel_each("lanes of no row", lanes_of_no_row);
    panel_each("entropy is that of the scores", entropy_is_that_of_the_scores);
    kernels_each("halves have the same bits", halves_have_the_same_bits);
    panel_each("columns take weights", columns_take_weights);
    panel_each("lanes add up", lanes_add_up);
    return test_finish();
}
