#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "train/settings.h"

static struct train_settings defaults(void)
{
    struct train_settings settings;
    train_settings_init(&settings);
    train_settings_complete(&settings);
    return settings;
}

static void test_defaults_can_be_trained(void **state)
{
    (void)state;
    struct train_settings settings = defaults();
    struct attn_error error;
    assert_true(train_settings_check(&settings, 1, &error));
    assert_int_equal(settings.schedule.warmup, 60);
    assert_int_equal(settings.save_every, 60);
    train_settings_init(&settings);
    assert_true(train_settings_set(&settings, "steps", "5", &error));
    assert_true(train_settings_set(&settings, "eval-every", "3", &error));
    train_settings_complete(&settings);
    assert_int_equal(settings.schedule.warmup, 0);
    assert_int_equal(settings.evaluate_every, 3);
    assert_int_equal(settings.save_every, 1);
    assert_true(train_settings_check(&settings, 1, &error));
}

static void test_texts_of_options(void **state)
{
    (void)state;
    struct train_settings settings = defaults();
    struct attn_error error;
    assert_true(train_settings_set(&settings, "lr", "2.5e-4", &error));
    assert_true(settings.schedule.peak == 2.5e-4);
    assert_true(train_settings_set(&settings, "dropout", ".5", &error));
    assert_true(settings.dropout == 0.5);
    assert_true(train_settings_set(&settings, "seed", "9007199254740992", &error));
    assert_true(settings.seed == 9007199254740992);
    assert_true(train_settings_set(&settings, "objective", "mlm", &error));
    assert_int_equal(settings.objective, TRAIN_MLM);
    assert_true(train_settings_set(&settings, "schedule", "linear", &error));
    assert_int_equal(settings.schedule.kind, SCHEDULE_LINEAR);
}

static void test_texts_that_are_refused(void **state)
{
    (void)state;
    static const char *const refused[][3] = {
        {"lr", "", "--lr is ''"},
        {"lr", "nan", "from 0 to"},
        {"lr", "inf", "--lr"},
        {"lr", "-1", "--lr"},
        {"lr", "1e", "--lr"},
        {"lr", "0x1", "--lr"},
        {"lr", " 1", "--lr"},
        {"lr", "1e400", "--lr"},
        {"steps", "0", "whole number"},
        {"steps", "1.5", "whole number"},
        {"steps", "1e3", "whole"},
        {"batch", "99999999999999999999", "--batch"},
        {"dropout", "1", "less than 1"},
        {"held-out", "1", "less than 1"},
        {"beta1", "1", "--beta1"},
        {"objective", "bert", "gpt or mlm"},
        {"schedule", "", "cosine or"},
        {"seed", "-1", "--seed"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct train_settings settings = defaults(), before = defaults();
        struct attn_error error = {""};
        assert_false(train_settings_set(&settings, refused[i][0], refused[i][1], &error));
        assert_message(&error, refused[i][2]);
        assert_memory_equal(&settings, &before, sizeof settings);
    }
}

static void test_settings_that_do_not_fit(void **state)
{
    (void)state;
    struct attn_error error = {""};
    struct train_settings settings = defaults();
    settings.batch = 6;
    settings.accumulate = 4;
    assert_false(train_settings_check(&settings, 1, &error));
    assert_message(&error, "--batch is 6");
    settings.accumulate = 2;
    assert_true(train_settings_check(&settings, 3, &error));
    assert_false(train_settings_check(&settings, 2, &error));
    assert_message(&error, "2·2");
    settings = defaults();
    settings.schedule.warmup = settings.schedule.total;
    assert_false(train_settings_check(&settings, 1, &error));
    assert_message(&error, "--warmup");
    settings = defaults();
    settings.schedule.last = 1.0;
    assert_false(train_settings_check(&settings, 1, &error));
    assert_message(&error, "--final-lr");
    settings = defaults();
    settings.objective = TRAIN_MLM;
    settings.context = 2;
    assert_false(train_settings_check(&settings, 1, &error));
    assert_message(&error, "--ctx is 2");
}

/* Whatever bits the numbers have. */
static void test_json_gives_the_same_bits(void **state)
{
    (void)state;
    struct train_settings settings = defaults(), back;
    struct attn_error error;
    settings.objective = TRAIN_MLM;
    settings.schedule.kind = SCHEDULE_LINEAR;
    settings.schedule.peak = 0.1 + 0.2;
    settings.optimizer.epsilon = nextafter(1e-8, 1.0);
    settings.dropout = 1.0 / 3.0;
    settings.seed = 9007199254740991;
    json_t *object = train_settings_to_json(&settings);
    assert_non_null(object);
    char *text = json_dumps(object, JSON_COMPACT);
    json_t *read = json_loads(text, 0, NULL);
    memset(&back, 0, sizeof back);
    assert_true(train_settings_from_json(&back, read, "file", &error));
    assert_true(settings.schedule.peak == back.schedule.peak);
    assert_true(settings.optimizer.epsilon == back.optimizer.epsilon);
    assert_true(settings.dropout == back.dropout && settings.seed == back.seed);
    json_t *again = train_settings_to_json(&back);
    assert_true(json_equal(object, again));
    json_decref(again);
    json_decref(read);
    free(text);
    json_decref(object);
}

static void test_json_that_is_refused(void **state)
{
    (void)state;
    struct train_settings settings = defaults(), back;
    json_t *object = train_settings_to_json(&settings);
    const char *name;
    json_t *value;
    json_object_foreach (object, name, value) {
        json_t *copy = json_deep_copy(object);
        struct attn_error error = {""};
        json_object_del(copy, name);
        assert_false(train_settings_from_json(&back, copy, "the file", &error));
        assert_message(&error, name);
        assert_message(&error, "the file: ");
        json_object_set_new(copy, name, json_real(-1.0));
        assert_false(train_settings_from_json(&back, copy, "the file", &error));
        assert_message(&error, "out of range");
        json_decref(copy);
    }
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_can_be_trained),
        cmocka_unit_test(test_texts_of_options),
        cmocka_unit_test(test_texts_that_are_refused),
        cmocka_unit_test(test_settings_that_do_not_fit),
        cmocka_unit_test(test_json_gives_the_same_bits),
        cmocka_unit_test(test_json_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
