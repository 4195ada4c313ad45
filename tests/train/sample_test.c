/* Text that a model draws, token by token. */
#include "train/sample.h"

#include <stdlib.h>

#include "cmocka_test.h"

enum { VOCABULARY = 23, CONTEXT = 6, COUNT = 40 };

static struct language_model *create(struct compute *compute)
{
    const struct language_model_settings settings = {.kind = LANGUAGE_MODEL_GPT2,
                                                     .vocabulary = VOCABULARY,
                                                     .layers = 1,
                                                     .heads = 2,
                                                     .width = 16,
                                                     .inner = 32,
                                                     .context = CONTEXT};
    struct language_model *model = NULL;
    struct attn_error error;
    if (!compute_create(compute, 1, &error) || !language_model_create(&model, &settings, 3, &error))
        fail_msg("%s", error.message);
    return model;
}

static void sample(struct language_model *model, const struct compute *compute,
                   const struct sample_settings *settings, int32_t ids[COUNT])
{
    struct attn_error error;
    ids[0] = 1;
    if (!sample_tokens(model, compute, settings, 1, COUNT, ids, &error))
        fail_msg("%s", error.message);
}

static struct sample_settings at_temperature(double temperature)
{
    return (struct sample_settings){
        .window = CONTEXT,
        .limit = VOCABULARY,
        .sampler = {.repeat_penalty = 1.0, .top_p = 1.0, .temperature = temperature, .seed = 1}};
}

static void test_cold_is_the_likeliest_in_the_window(void **state)
{
    (void)state;
    struct compute compute;
    struct language_model *model = create(&compute);
    const struct sample_settings settings = at_temperature(0.0);
    int32_t ids[COUNT];
    sample(model, &compute, &settings, ids);
    for (int i = 1; i < COUNT; i++) {
        float logits[VOCABULARY];
        struct attn_error error;
        const int seen = i < CONTEXT ? i : CONTEXT;
        assert_true(language_model_next(model, &compute, ids + i - seen, seen, logits, &error));
        for (int id = 0; id < VOCABULARY; id++)
            assert_true(logits[id] <= logits[ids[i]]);
    }
    language_model_close(model);
    compute_destroy(&compute);
}

static void test_the_seed_tells_the_text(void **state)
{
    (void)state;
    struct compute compute;
    struct language_model *model = create(&compute);
    struct sample_settings settings = at_temperature(1.0);
    int32_t one[COUNT], same[COUNT], other[COUNT];
    sample(model, &compute, &settings, one);
    sample(model, &compute, &settings, same);
    assert_memory_equal(one, same, sizeof one);
    settings.sampler.seed = 2;
    sample(model, &compute, &settings, other);
    assert_memory_not_equal(one, other, sizeof one);
    language_model_close(model);
    compute_destroy(&compute);
}

static void test_ids_beyond_the_limit_are_never_drawn(void **state)
{
    (void)state;
    struct compute compute;
    struct language_model *model = create(&compute);
    struct sample_settings settings = at_temperature(5.0);
    settings.limit = 4;
    int32_t ids[COUNT];
    sample(model, &compute, &settings, ids);
    for (int i = 1; i < COUNT; i++)
        assert_in_range(ids[i], 0, 3);
    language_model_close(model);
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cold_is_the_likeliest_in_the_window),
        cmocka_unit_test(test_the_seed_tells_the_text),
        cmocka_unit_test(test_ids_beyond_the_limit_are_never_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
