/* What a look keeps: whole rows or links, vectors, and how much of it fits into memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "each_isa.h"
#include "look_scene.h"
#include "probe/look_pass.h"

static const struct look_head heads[] = {
    {LOOK_MEAN, LOOK_MEAN}, {1, LOOK_MEAN}, {0, 0}, {0, 1}, {1, 1}};
enum { HEADS = sizeof heads / sizeof heads[0] };

static struct look look_at(const struct look_scene *scene, enum look_unit unit, size_t links,
                           bool vectors)
{
    const struct look_settings settings = {.heads = heads,
                                           .head_count = HEADS,
                                           .unit = unit,
                                           .special = unit == LOOK_PIECES,
                                           .links = links,
                                           .vectors = vectors};
    return look_scene_run(scene, &settings);
}

/* The strongest of what is whole, in their order, and the sum of all. */
static void check_row(const float *row, size_t units, const struct look_link *links, size_t count,
                      float sum)
{
    bool taken[LOOK_SCENE_TOKENS] = {false};
    double whole = 0.0;
    for (size_t n = 0; n < units; n++)
        whole += (double)row[n];
    assert_true(fabs((double)sum - whole) <= 1e-6);
    for (size_t n = 0; n < count; n++) {
        size_t best = units;
        for (size_t column = 0; column < units; column++)
            if (!taken[column] && row[column] > 0.0f && (best == units || row[column] > row[best]))
                best = column;
        if (best == units) {
            assert_true(links[n].weight == 0.0f);
            continue;
        }
        assert_int_equal(links[n].column, best);
        assert_true(links[n].weight == row[best]);
        taken[best] = true;
    }
}

static void test_links_are_the_strongest(void **state)
{
    (void)state;
    const char *const names[] = {"tiny_bert", "tiny_gpt2", "tiny_llama"};
    for (size_t model = 0; model < 3; model++) {
        struct look_scene scene = look_scene_open(names[model]);
        for (int unit = LOOK_WORDS; unit <= LOOK_PIECES; unit++)
            for (size_t count = 1; count <= LOOK_SCENE_TOKENS + 2; count++) {
                struct look whole = look_at(&scene, (enum look_unit)unit, 0, false);
                struct look part = look_at(&scene, (enum look_unit)unit, count, false);
                assert_null(whole.links);
                assert_null(part.weights);
                assert_int_equal(part.links_a_row, count < whole.units ? count : whole.units);
                for (size_t row = 0; row < HEADS * whole.units; row++)
                    check_row(whole.weights + row * whole.units, whole.units,
                              part.links + row * part.links_a_row, part.links_a_row,
                              part.row_sums[row]);
                look_release(&whole);
                look_release(&part);
            }
        look_scene_close(&scene);
    }
}

static void test_equal_and_strange_weights(void **state)
{
    (void)state;
    const float row[] = {0.25f, 0.5f, 0.25f, 0.0f, 0.5f, NAN, 0.25f};
    struct look_link links[7];
    look_find_links(row, 7, 5, links);
    const uint32_t expected[] = {5, 1, 4, 0, 2};
    for (int n = 0; n < 5; n++)
        assert_int_equal(links[n].column, expected[n]);
    look_find_links(row + 3, 1, 1, links);
    assert_true(links[0].weight == 0.0f);
    look_find_links(row, 7, 7, links);
    assert_true(links[5].weight == 0.25f && links[5].column == 6 && links[6].weight == 0.0f);
}

/* Whole or not, a renormalised row is the same. */
static void test_renormalized(void **state)
{
    (void)state;
    struct look_scene scene = look_scene_open("tiny_bert");
    struct look whole = look_at(&scene, LOOK_WORDS, 0, false);
    struct look part = look_at(&scene, LOOK_WORDS, 2, false);
    look_renormalize(&whole, HEADS);
    look_renormalize(&part, HEADS);
    for (size_t row = 0; row < HEADS * whole.units; row++) {
        double sum = 0.0;
        for (size_t n = 0; n < whole.units; n++)
            sum += (double)whole.weights[row * whole.units + n];
        assert_true(fabs(sum - 1.0) <= 1e-6);
        for (size_t n = 0; n < 2; n++) {
            const struct look_link *link = &part.links[row * 2 + n];
            assert_true(fabs((double)link->weight -
                             (double)whole.weights[row * whole.units + link->column]) <= 1e-6);
        }
    }
    look_release(&whole);
    look_release(&part);
    look_scene_close(&scene);
}

/* exp(scale·q·k) over its sum is the weight that is told. */
static void check_vectors(const struct look *look, bool causal, size_t matrix, int64_t layer,
                          int64_t head)
{
    const struct look_vectors *vectors = &look->vectors;
    const int64_t key_head = head / (vectors->heads / vectors->key_heads);
    for (int64_t i = 0; i < LOOK_SCENE_TOKENS; i++) {
        double weights[LOOK_SCENE_TOKENS], sum = 0.0;
        const int64_t end = causal ? i + 1 : LOOK_SCENE_TOKENS;
        for (int64_t j = 0; j < end; j++) {
            double score = 0.0;
            for (int64_t n = 0; n < vectors->d; n++)
                score +=
                    (double)
                        vectors->queries[((layer * vectors->heads + head) * LOOK_SCENE_TOKENS + i) *
                                             vectors->d +
                                         n] *
                    (double)vectors
                        ->keys[((layer * vectors->key_heads + key_head) * LOOK_SCENE_TOKENS + j) *
                                   vectors->d +
                               n];
            sum += weights[j] = exp((double)vectors->scale * score);
        }
        for (int64_t j = 0; j < end; j++) {
            const float told =
                look->weights[(matrix * LOOK_SCENE_TOKENS + (size_t)i) * LOOK_SCENE_TOKENS +
                              (size_t)j];
            assert_true(fabs(weights[j] / sum - (double)told) <= 1e-5);
        }
    }
}

static void test_vectors_make_the_weights(void **state)
{
    (void)state;
    const char *const names[] = {"tiny_bert", "tiny_gpt2", "tiny_llama"};
    for (int model = 0; model < 3; model++) {
        struct look_scene scene = look_scene_open(names[model]);
        struct look look = look_at(&scene, LOOK_PIECES, 0, true);
        assert_int_equal(look.vectors.tokens, LOOK_SCENE_TOKENS);
        assert_int_equal(look.vectors.layers, 2);
        double values = 0.0;
        for (int64_t n = 0; n < 2 * look.vectors.key_heads * LOOK_SCENE_TOKENS * look.vectors.d;
             n++)
            values += fabs((double)look.vectors.values[n]);
        assert_true(values > 0.1);
        for (size_t n = 2; n < HEADS; n++)
            check_vectors(&look, model > 0, n, heads[n].layer, heads[n].head);
        look_release(&look);
        assert_null(look.vectors.queries);
        look = look_at(&scene, LOOK_PIECES, 0, false);
        assert_null(look.vectors.queries);
        look_release(&look);
        look_scene_close(&scene);
    }
}

static void test_units_alone(void **state)
{
    (void)state;
    struct look_scene scene = look_scene_open("tiny_bert");
    struct look look = look_at(&scene, LOOK_WORDS, 0, false), units;
    struct attn_error error;
    assert_true(look_name_units(&scene.encoding, LOOK_WORDS, false, &units, &error));
    assert_int_equal(units.units, look.units);
    for (size_t n = 0; n < units.units; n++) {
        assert_int_equal(units.first_token[n], look.first_token[n]);
        assert_int_equal(units.token_counts[n], look.token_counts[n]);
        assert_int_equal(units.word[n], look.word[n]);
    }
    assert_null(units.weights);
    look_release(&units);
    look_release(&look);
    look_scene_close(&scene);
}

/* The design's example: 30 layers of 9 heads over 8,192 tokens are 67 GiB of weights, 8 links a row
 * of them less than 200 MiB. */
static void test_memory(void **state)
{
    (void)state;
    enum { COUNT = 270, LONG = 8192 };
    const struct text_model_settings model = {
        .kind = MODEL_LLAMA, .layers = 30, .heads = 9, .width = 576};
    struct look_head all[COUNT];
    for (int n = 0; n < COUNT; n++)
        all[n] = (struct look_head){n / 9, n % 9};
    struct look_settings settings = {.heads = all, .head_count = COUNT, .unit = LOOK_PIECES};
    struct attn_error error;
    struct look_size size = look_size_of(&model, &settings, LONG, LONG);
    assert_true(size.bytes / 1073741824.0 > 67.0 && size.bytes / 1073741824.0 < 68.0);
    assert_false(look_size_check(&size, &settings, LONG, INT64_C(16) << 30, &error));
    assert_message(&error, "270 matrices of 8192 × 8192 numbers take 67.5 GiB, 16.0 GiB are "
                           "available: look at fewer heads, or at a shorter text");
    assert_true(look_size_check(&size, &settings, LONG, INT64_MAX, &error));
    settings.links = 8;
    size = look_size_of(&model, &settings, LONG, LONG);
    assert_true(size.bytes < 200e6);
    assert_true(look_size_check(&size, &settings, LONG, INT64_C(200) << 20, &error));

    /* One mean over all layers: the sums are there too. */
    const struct look_head mean = {LOOK_MEAN, LOOK_MEAN};
    settings = (struct look_settings){.heads = &mean, .head_count = 1};
    size = look_size_of(&model, &settings, LONG, LONG);
    assert_true(size.mean && size.all);
    assert_true(size.bytes > 12.0 * LONG * LONG && size.bytes < 12.2 * LONG * LONG);
    settings.measure = LOOK_ROLLOUT;
    size = look_size_of(&model, &settings, LONG, LONG);
    assert_true(size.bytes > 12.0 * LONG * LONG && size.bytes < 12.7 * LONG * LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links_are_the_strongest),
        cmocka_unit_test(test_equal_and_strange_weights),
        cmocka_unit_test(test_renormalized),
        cmocka_unit_test(test_vectors_make_the_weights),
        cmocka_unit_test(test_units_alone),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
