/* Texts that are refused before a word is written, and memory that fails while they are. */
#include <math.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "generation_scene.h"

static void check_refused(const struct world *world, const struct generation_settings *settings,
                          const struct prompt *prompts, int64_t count,
                          const struct model_observer *observer, const char *words_of_it)
{
    struct causal_session *session = open_session(world, 2);
    struct told told = {0};
    const struct generation_listener listener = {
        .token = take_token, .end = take_end, .user = &told, .observer = observer};
    struct attn_error error;
    assert_false(generate(session, world->tokenizer, settings, prompts, count, &listener, &error));
    assert_message(&error, words_of_it);
    for (int n = 0; n < 2; n++) {
        assert_int_equal(told.of[n].count, 0);
        assert_false(told.of[n].ended);
        assert_int_equal(causal_session_length(session, n), 0);
    }
    causal_session_destroy(session);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    struct world world = world_open("tiny_gpt2");
    const struct generation_settings settings = greedy();
    json_t *file = test_data_json("cases/models.json");
    const json_t *one = case_find(file, "gpt2_prompt_longer_than_its_positions");
    int32_t ids[ROOM];
    const struct prompt longer = {ids, read_ids(case_field(one, "input", "prompt"), ids), 0};
    check_refused(&world, &settings, &longer, 1, NULL,
                  json_string_value(case_field(one, "expected", "refused")));
    json_decref(file);

    const struct prompt second[] = {{words, 2, 0}, longer};
    check_refused(&world, &settings, second, 2, NULL, "the prompt has 9 tokens");
    const struct prompt empty[] = {{words, 2, 0}, {words, 0, 0}};
    check_refused(&world, &settings, empty, 2, NULL, "the prompt has no tokens");
    const struct prompt read[] = {{words, 2, -1}, {words, 2, 1}, {words, 2, 2}};
    for (int n = 0; n < 3; n++)
        check_refused(&world, &settings, &read[n], 1, NULL,
                      "of the prompt's 2 tokens are said to be read, the sequence holds 0");
    check_refused(&world, &settings, several, 3, NULL, "3 prompts are given, the session has 2");
    check_refused(&world, &settings, several, 0, NULL, "0 prompts are given");
    int64_t rows = 0;
    const struct model_observer observer = {count_rows, &rows, NULL};
    check_refused(&world, &settings, several, 2, &observer, "an observer sees one alone");
    const int32_t unknown[] = {1, 11};
    const struct prompt strange = {unknown, 2, 0};
    check_refused(&world, &settings, &strange, 1, NULL, "11");

    const char *const stop = "";
    struct generation_settings wrong = settings;
    wrong.stops = &stop;
    wrong.stop_count = 1;
    check_refused(&world, &wrong, several, 1, NULL, "a stop string is empty");
    wrong = settings;
    wrong.limit = -2;
    check_refused(&world, &wrong, several, 1, NULL, "-2 new tokens");
    wrong = settings;
    wrong.sampler.temperature = NAN;
    check_refused(&world, &wrong, several, 1, NULL, "the temperature is not a number");
    world_close(&world);
}

static void test_a_context_that_holds_something(void **state)
{
    (void)state;
    struct world world = world_open("tiny_gpt2");
    struct generation_settings settings = greedy();
    settings.limit = 1;
    struct causal_session *session = open_session(&world, 1);
    struct told told = {0};
    write_on(&world, session, &settings, several, 1, &told);
    const struct generation_listener listener = {0};
    const struct prompt prompt = {words, 4, 0};
    struct attn_error error;
    assert_false(generate(session, world.tokenizer, &settings, &prompt, 1, &listener, &error));
    assert_message(&error, "the prompt has 4 tokens, the context of 8 holds 5 before it");
    assert_int_equal(causal_session_length(session, 0), 5);

    const struct prompt in_part = {words, 9, 5}, whole = {words, 5, 5};
    assert_false(generate(session, world.tokenizer, &settings, &in_part, 1, &listener, &error));
    assert_message(&error, "the prompt has 9 tokens, the model has 8 positions");
    assert_false(generate(session, world.tokenizer, &settings, &whole, 1, &listener, &error));
    assert_message(&error, "5 of the prompt's 5 tokens are said to be read");
    causal_session_destroy(session);
    told_release(&told);
    world_close(&world);
}

/* A stop string, text, and more tokens than a list of them has room for at first. */
struct attempt {
    struct world *world;
    struct causal_session *session;
};

static bool generate_once(void *user, struct attn_error *error)
{
    const struct attempt *attempt = user;
    const char *const stop = "zzz";
    struct generation_settings settings = greedy();
    settings.stops = &stop;
    settings.stop_count = 1;
    settings.sampler.repeat_penalty = 1.2;
    struct told told = {0};
    const struct generation_listener listener = {.user = &told};
    for (int64_t n = 0; n < 2; n++)
        causal_session_truncate(attempt->session, n, 0);
    return generate(attempt->session, attempt->world->tokenizer, &settings, several, 2, &listener,
                    error);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    struct attempt attempt = {&world, open_session(&world, 2)};
    assert_true(allocation_sweep(generate_once, &attempt) >= 15);
    causal_session_destroy(attempt.session);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_a_context_that_holds_something),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
