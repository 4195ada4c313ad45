/* Looks at the default model, from text to ranking. */
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "golden.h"
#include "look_scene.h"

struct scene {
    struct tokenizer *tokenizer;
    struct model_source *source;
    struct text_model *model;
    struct compute compute;
    struct encoding encoding;
    struct look look;
};

static const struct look_head mean = {LOOK_MEAN, LOOK_MEAN};

static struct scene look_at_heads(const char *text, enum look_unit unit, bool special,
                                  const struct look_head *heads, size_t count)
{
    struct scene scene = {.compute = make_compute(1)};
    struct attn_error error;
    if (!model_source_open(&scene.source, golden_model_directory(), &error) ||
        !text_model_open(&scene.model, scene.source, &error))
        fail_msg("%s", error.message);
    if (!tokenizer_open(&scene.tokenizer, golden_model_directory(), &error))
        fail_msg("%s", error.message);
    const struct tokenizer_input input = {.text = text, .text_size = strlen(text)};
    if (!tokenizer_encode(scene.tokenizer, &input, &scene.encoding, &error))
        fail_msg("%s", error.message);
    const struct look_settings settings = {
        .heads = heads, .head_count = count, .unit = unit, .special = special};
    if (!look_run(scene.model, &scene.compute, &scene.encoding, &settings, &scene.look, &error))
        fail_msg("%s", error.message);
    return scene;
}

static struct scene look_at(const char *text, enum look_unit unit, bool special)
{
    return look_at_heads(text, unit, special, &mean, 1);
}

static void close_scene(struct scene *scene)
{
    look_release(&scene->look);
    encoding_release(&scene->encoding);
    tokenizer_close(scene->tokenizer);
    compute_destroy(&scene->compute);
    text_model_close(scene->model);
    model_source_close(scene->source);
}

/* The text of a unit's word is `label`. */
static bool reads(const struct scene *scene, const char *text, size_t unit, const char *label)
{
    const struct word *word = &scene->encoding.words[scene->look.word[unit]];
    return word->end - word->begin == strlen(label) &&
           memcmp(text + word->begin, label, strlen(label)) == 0;
}

static size_t unit_of(const struct scene *scene, const char *text, const char *label)
{
    for (size_t unit = 0; unit < scene->look.units; unit++)
        if (reads(scene, text, unit, label))
            return unit;
    fail_msg("no unit is %s", label);
    return 0;
}

/* From "it", without special tokens and the word itself: the five words looked at most, in order.
 */
static void test_robot(void **state)
{
    (void)state;
    const char *const text = "The robot picked up the screwdriver because it was heavy.";
    const struct {
        const char *word;
        float weight;
    } ranking[] = {{"screwdriver", 0.119f},
                   {"heavy", 0.090f},
                   {"because", 0.081f},
                   {"robot", 0.073f},
                   {"was", 0.069f}};
    enum { RANKED = sizeof ranking / sizeof ranking[0] };
    struct scene scene = look_at(text, LOOK_WORDS, false);
    assert_int_equal(scene.look.units, 11);
    const size_t it = unit_of(&scene, text, "it");
    const float *row = scene.look.weights + it * scene.look.units;

    float before = 1.0f;
    for (size_t n = 0; n < RANKED; n++) {
        const float weight = row[unit_of(&scene, text, ranking[n].word)];
        assert_near(&weight, &ranking[n].weight, 1, 0.0005);
        assert_true(weight < before);
        before = weight;
    }
    size_t stronger = 0;
    for (size_t unit = 0; unit < scene.look.units; unit++)
        stronger += unit != it && row[unit] >= before;
    assert_int_equal(stronger, RANKED);
    close_scene(&scene);
}

/* A special token in the text is one unit with a word of its own, and shifts no other. */
static void test_mask_is_one_unit(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/labels.json");
    const json_t *one = case_find(file, "mask_is_one_label");
    const char *text = json_string_value(case_field(one, "input", "text"));
    const json_t *labels = case_field(one, "expected", "labels");
    for (int unit = LOOK_WORDS; unit <= LOOK_PIECES; unit++) {
        struct scene scene = look_at(text, (enum look_unit)unit, true);
        const size_t last = json_array_size(labels) - 1;
        assert_int_equal(scene.look.units, last + 1);
        assert_int_equal(scene.look.word[0], TOKEN_NO_WORD);
        assert_int_equal(scene.look.word[last], TOKEN_NO_WORD);
        for (size_t n = 1; n < last; n++)
            assert_true(reads(&scene, text, n, json_string_value(json_array_get(labels, n))));
        close_scene(&scene);
    }
    json_decref(file);
}

/* Rows come a tile at a time, here of 32 of 12 heads: words that a tile's end cuts, one of them
 * longer than a tile, are what their pieces make. */
static void test_words_across_tiles(void **state)
{
    (void)state;
    const char *const text =
        "Unaffordable screwdrivers, antidisestablishmentarianism; 1234567890 overgeneralizations "
        "qxzjvkwqxzjvkwqqzzxxjjvvkkwwqxzjvkwqxzjvkwqqzzxxjjvvkkwwqxzjvkwqxzjvkwqqzzxxjjvvkkww "
        "hypercoagulability, indistinguishableness? Thermoluminescence! Pseudoparallelogram.";
    const struct look_head heads[] = {{LOOK_MEAN, LOOK_MEAN}, {2, LOOK_MEAN}, {3, 4}, {3, 11}};
    enum { HEADS = sizeof heads / sizeof heads[0] };
    struct scene pieces = look_at_heads(text, LOOK_PIECES, true, heads, HEADS);
    struct scene words = look_at_heads(text, LOOK_WORDS, false, heads, HEADS);
    const size_t tokens = pieces.look.units, units = words.look.units;
    assert_true(tokens > 96 && tokens > units + 64);

    int32_t *group = calloc(tokens, sizeof *group);
    float *merged = calloc(units, units * sizeof *merged);
    assert_true(group && merged);
    size_t longest = 0;
    for (size_t t = 0; t < tokens; t++) {
        group[t] = words.encoding.tokens[t].word; /* words are numbered through */
        size_t length = 1;
        while (t + length < tokens && words.encoding.tokens[t + length].word == group[t])
            length++;
        longest = length > longest ? length : longest;
    }
    assert_true(longest > 40);
    for (size_t n = 0; n < HEADS; n++) {
        look_scene_merge(pieces.look.weights + n * tokens * tokens, tokens, group, units, merged);
        assert_near(words.look.weights + n * units * units, merged, units * units, 1e-6);
    }
    free(group);
    free(merged);
    close_scene(&pieces);
    close_scene(&words);
}

int main(void)
{
    if (!golden_model_directory())
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_robot),
        cmocka_unit_test(test_mask_is_one_unit),
        cmocka_unit_test(test_words_across_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
