/* Texts that tiny models write. */
#include "model/generation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "generation_scene.h"

static void test_runs_into_its_last_position(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/models.json");
    const json_t *one = case_find(file, "gpt2_runs_into_its_last_position");
    struct world world = world_open("tiny_gpt2");
    int32_t ids[ROOM], expected[ROOM];
    const struct prompt prompt = {ids, read_ids(case_field(one, "input", "prompt"), ids), 0};
    struct generation_settings settings = greedy();
    settings.limit = json_integer_value(case_field(one, "input", "new_tokens"));
    struct told told = {0};
    write_alone(&world, &settings, &prompt, &told);
    const int64_t most = read_ids(case_field(one, "expected", "new_ids_at_most"), expected);
    assert_int_equal(told.of[0].count, most);
    assert_memory_equal(told.of[0].ids, expected, (size_t)most * sizeof *expected);
    assert_int_equal(told.of[0].end, GENERATION_CONTEXT);
    told_release(&told);
    world_close(&world);
    json_decref(file);
}

static void test_a_prompt_that_fills_the_context(void **state)
{
    (void)state;
    struct world world = world_open("tiny_gpt2");
    const int32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6};
    const struct prompt prompt = {ids, 8, 0};
    struct generation_settings settings = greedy();
    struct causal_session *session = open_session(&world, 1);
    struct told told = {0};
    write_on(&world, session, &settings, &prompt, 1, &told);
    assert_int_equal(told.of[0].count, 1);
    assert_int_equal(told.of[0].end, GENERATION_CONTEXT);
    assert_int_equal(causal_session_length(session, 0), 8);
    told_release(&told);
    causal_session_destroy(session);
    world_close(&world);
}

/* The next word after all words that are there, read anew. */
static int32_t next_of(const struct world *world, const int32_t *ids, int64_t count,
                       double *log_probability)
{
    const struct causal_manner manner = {.cache = CACHE_F32};
    const int64_t vocabulary = world->scene.vocabulary;
    float *all = causal_scene_logits(&world->scene, &world->compute, &manner, ids, count);
    const float *logits = all + (count - 1) * vocabulary;
    int32_t best = 0;
    double sum = 0.0;
    for (int32_t id = 0; id < vocabulary; id++) {
        best = logits[id] > logits[best] ? id : best;
        sum += exp((double)logits[id]);
    }
    *log_probability = (double)logits[best] - log(sum);
    free(all);
    return best;
}

static void test_greedy_words(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    int32_t ids[ROOM] = {1, 2, 3};
    const struct prompt prompt = {ids, 3, 0};
    struct generation_settings settings = greedy();
    settings.limit = 12;
    struct told told = {0};
    write_alone(&world, &settings, &prompt, &told);
    assert_int_equal(told.of[0].count, 12);
    assert_int_equal(told.of[0].end, GENERATION_LIMIT);
    for (int64_t n = 0; n < 12; n++) {
        double log_probability;
        ids[3 + n] = next_of(&world, ids, 3 + n, &log_probability);
        assert_int_equal(told.of[0].ids[n], ids[3 + n]);
        assert_true(fabs(told.of[0].log_probabilities[n] - log_probability) <= 1e-5);
        assert_int_equal(told.of[0].text.data[n], 'a' + ids[3 + n]);
    }
    told_release(&told);
    world_close(&world);
}

/* A text has this long begin in both. */
static void check_same(const struct told *one, int64_t n, const struct told *other, int64_t m)
{
    assert_int_equal(one->of[n].count, other->of[m].count);
    assert_int_equal(one->of[n].end, other->of[m].end);
    assert_memory_equal(one->of[n].ids, other->of[m].ids,
                        (size_t)one->of[n].count * sizeof one->of[n].ids[0]);
    for (int64_t i = 0; i < one->of[n].count; i++)
        assert_true(fabs(one->of[n].log_probabilities[i] - other->of[m].log_probabilities[i]) <=
                    1e-5);
}

static void test_side_by_side_as_alone(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    const int32_t end_id = 4;
    for (int hot = 0; hot < 2; hot++) {
        struct generation_settings settings = greedy();
        settings.sampler.temperature = hot ? 1.5 : 0.0;
        settings.sampler.min_p = 0.0;
        settings.sampler.seed = 11;
        settings.end_ids = &end_id;
        settings.end_count = hot ? 1 : 0;
        struct told together = {0};
        struct causal_session *session = open_session(&world, SEQUENCES);
        write_on(&world, session, &settings, several, SEQUENCES, &together);
        causal_session_destroy(session);
        bool lengths_differ = false;
        for (int64_t n = 0; n < SEQUENCES; n++) {
            struct told alone = {0};
            write_alone(&world, &settings, &several[n], &alone);
            check_same(&together, n, &alone, 0);
            settings.sampler.seed++;
            lengths_differ |= alone.of[0].count != together.of[0].count;
            told_release(&alone);
        }
        assert_true(lengths_differ); /* some leave the batch before others */
        told_release(&together);
    }
    world_close(&world);
}

static void test_the_seed_tells_the_text(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    struct generation_settings settings = greedy();
    settings.sampler.temperature = 1.0;
    settings.sampler.seed = 5;
    struct told one = {0}, same = {0}, other = {0};
    write_alone(&world, &settings, &several[0], &one);
    write_alone(&world, &settings, &several[0], &same);
    settings.sampler.seed = 6;
    write_alone(&world, &settings, &several[0], &other);
    check_same(&one, 0, &same, 0);
    assert_memory_not_equal(one.of[0].ids, other.of[0].ids, 20 * sizeof other.of[0].ids[0]);
    told_release(&one);
    told_release(&same);
    told_release(&other);
    world_close(&world);
}

/* What the model writes after several[0], greedily; at least so many words. */
static void write_model_text(const struct world *world, struct told *told, int64_t least)
{
    struct generation_settings settings = greedy();
    write_alone(world, &settings, &several[0], told);
    assert_true(told->of[0].count >= least);
}

static void test_ends(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    struct told all = {0};
    write_model_text(&world, &all, 6);
    /* The first word that was not there before. */
    int64_t place = 1;
    while (all.of[0].ids[place] == all.of[0].ids[0])
        place++;
    const int32_t ends[] = {99, all.of[0].ids[place]};
    struct generation_settings settings = greedy();
    settings.end_ids = ends;
    settings.end_count = 2;
    struct told told = {0};
    struct causal_session *session = open_session(&world, 1);
    write_on(&world, session, &settings, several, 1, &told);
    assert_int_equal(told.of[0].end, GENERATION_END_TOKEN);
    assert_int_equal(told.of[0].count, place);
    /* All that was told was read, the end token was not. */
    assert_int_equal(causal_session_length(session, 0), several[0].count + place);
    told_release(&told);
    causal_session_destroy(session);

    for (int64_t limit = 0; limit < 3; limit++) {
        settings = greedy();
        settings.limit = limit;
        told = (struct told){0};
        session = open_session(&world, 1);
        write_on(&world, session, &settings, several, 1, &told);
        assert_int_equal(told.of[0].end, GENERATION_LIMIT);
        assert_int_equal(told.of[0].count, limit);
        assert_int_equal(causal_session_length(session, 0),
                         limit == 0 ? 0 : several[0].count + limit - 1);
        told_release(&told);
        causal_session_destroy(session);
    }

    settings = greedy();
    told = (struct told){.wanted = 3};
    write_alone(&world, &settings, &several[0], &told);
    assert_int_equal(told.of[0].end, GENERATION_REFUSED);
    assert_int_equal(told.of[0].count, 3);
    told_release(&told);
    told_release(&all);
    world_close(&world);
}

static void test_a_stop_string(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    struct told all = {0};
    write_model_text(&world, &all, 10);
    /* Three letters that stand nowhere before. */
    char stop[4] = {0};
    memcpy(stop, all.of[0].text.data + 4, 3);
    const char *const stops[] = {"xyz", stop};
    const size_t place = (size_t)(strstr(all.of[0].text.data, stop) - all.of[0].text.data);
    struct generation_settings settings = greedy();
    settings.stops = stops;
    settings.stop_count = 2;
    struct told told = {0};
    write_alone(&world, &settings, &several[0], &told);
    assert_int_equal(told.of[0].end, GENERATION_STOP);
    assert_int_equal(told.of[0].count, place + 3);
    assert_int_equal(told.of[0].text.size, place);
    assert_memory_equal(told.of[0].text.data, all.of[0].text.data, place);
    told_release(&told);

    /* One that does not come takes nothing from the text. */
    const char *const other[] = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"};
    settings.stops = other;
    settings.stop_count = 1;
    told = (struct told){0};
    write_alone(&world, &settings, &several[0], &told);
    assert_string_equal(told.of[0].text.data, all.of[0].text.data);
    told_release(&told);
    told_release(&all);
    world_close(&world);
}

static void test_a_text_goes_on(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    struct told all = {0};
    write_model_text(&world, &all, 8);
    struct generation_settings settings = greedy();
    settings.limit = 4;
    struct causal_session *session = open_session(&world, 1);
    struct told first = {0}, rest = {0};
    write_on(&world, session, &settings, several, 1, &first);
    /* The last word was drawn and not read. */
    const struct prompt prompt = {&first.of[0].ids[3], 1, 0};
    write_on(&world, session, &settings, &prompt, 1, &rest);
    assert_memory_equal(rest.of[0].ids, &all.of[0].ids[4], 4 * sizeof all.of[0].ids[0]);
    causal_session_destroy(session);
    told_release(&first);
    told_release(&rest);
    told_release(&all);
    world_close(&world);
}

/* A penalty counts what the sequence held already, where the prompt names it. */
static void test_a_prompt_that_is_read_in_part(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    struct generation_settings settings = greedy();
    settings.sampler.repeat_penalty = 3.0;
    settings.sampler.repeat_last = -1;
    settings.limit = 10;
    struct told all = {0};
    write_alone(&world, &settings, &several[0], &all);

    for (int64_t chunk = 1; chunk < 4; chunk++) {
        const struct causal_session_settings shape = {
            .sequences = 1, .capacity = 32, .chunk = chunk, .cache = CACHE_F32};
        struct causal_session *session;
        struct attn_error error;
        assert_true(
            causal_session_create(&session, world.scene.model, &world.compute, &shape, &error));
        struct told first = {0}, rest = {0};
        settings.limit = 5;
        write_on(&world, session, &settings, several, 1, &first);
        int32_t ids[ROOM];
        memcpy(ids, several[0].ids, (size_t)several[0].count * sizeof *ids);
        memcpy(ids + several[0].count, first.of[0].ids, 5 * sizeof *ids);
        const int64_t count = several[0].count + 5;
        causal_session_truncate(session, 0, count - 3);

        int64_t rows = 0;
        const struct model_observer observer = {count_rows, &rows, NULL};
        const struct generation_listener listener = {
            .token = take_token, .end = take_end, .user = &rest, .observer = &observer};
        const struct prompt prompt = {ids, count, count - 3};
        if (!generate(session, world.tokenizer, &settings, &prompt, 1, &listener, &error))
            fail_msg("%s", error.message);
        assert_int_equal(rows, 3 + 4);
        assert_memory_equal(rest.of[0].ids, &all.of[0].ids[5], 5 * sizeof all.of[0].ids[0]);
        assert_int_equal(causal_session_length(session, 0), count + 4);
        causal_session_destroy(session);
        told_release(&first);
        told_release(&rest);
    }
    told_release(&all);
    world_close(&world);
}

/* How far a prompt was read, and when its reading is refused. */
struct reading {
    struct told told;
    int64_t calls, tokens, all;
    int64_t wanted; /* calls, of which the last one refuses; 0: all */
};

static bool take_reading(void *user, int64_t tokens, int64_t all)
{
    struct reading *reading = user;
    assert_true(tokens > reading->tokens && tokens < all);
    reading->tokens = tokens;
    reading->all = all;
    return ++reading->calls != reading->wanted;
}

static void take_reading_end(void *user, int64_t sequence, enum generation_end end,
                             const char *text, size_t text_size)
{
    take_end(&((struct reading *)user)->told, sequence, end, text, text_size);
}

static void test_a_long_prompt_tells_how_far_it_is_read(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    const int64_t count = several[0].count;
    assert_true(count >= 3);
    const struct causal_session_settings shape = {
        .sequences = 1, .capacity = 32, .chunk = 1, .cache = CACHE_F32};
    for (int64_t wanted = 0; wanted < count; wanted++) {
        struct causal_session *session;
        struct attn_error error;
        assert_true(
            causal_session_create(&session, world.scene.model, &world.compute, &shape, &error));
        struct reading reading = {.wanted = wanted};
        const struct generation_listener listener = {
            .end = take_reading_end, .reading = take_reading, .user = &reading};
        struct generation_settings settings = greedy();
        settings.limit = 2;
        if (!generate(session, NULL, &settings, several, 1, &listener, &error))
            fail_msg("%s", error.message);
        const int64_t calls = wanted > 0 ? wanted : count - 1;
        assert_int_equal(reading.calls, calls);
        assert_int_equal(reading.tokens, calls);
        assert_int_equal(reading.all, count);
        assert_true(reading.told.of[0].ended);
        assert_int_equal(reading.told.of[0].end,
                         wanted > 0 ? GENERATION_REFUSED : GENERATION_LIMIT);
        assert_int_equal(causal_session_length(session, 0), wanted > 0 ? wanted : count + 1);
        told_release(&reading.told);
        causal_session_destroy(session);
    }
    world_close(&world);
}

static void test_an_observer_sees_every_read(void **state)
{
    (void)state;
    struct world world = world_open("tiny_llama");
    struct told all = {0};
    write_model_text(&world, &all, 8);
    for (int64_t chunk = 1; chunk < 8; chunk++) {
        const struct causal_session_settings shape = {
            .sequences = 1, .capacity = 32, .chunk = chunk, .cache = CACHE_F32};
        struct causal_session *session;
        struct attn_error error;
        assert_true(
            causal_session_create(&session, world.scene.model, &world.compute, &shape, &error));
        int64_t rows = 0;
        const struct model_observer observer = {count_rows, &rows, NULL};
        struct told told = {0};
        const struct generation_listener listener = {
            .token = take_token, .end = take_end, .user = &told, .observer = &observer};
        struct generation_settings settings = greedy();
        settings.limit = 8;
        if (!generate(session, NULL, &settings, several, 1, &listener, &error))
            fail_msg("%s", error.message);
        assert_int_equal(rows, several[0].count + 7);
        assert_memory_equal(told.of[0].ids, all.of[0].ids, 8 * sizeof all.of[0].ids[0]);
        assert_int_equal(told.of[0].text.size, 0); /* without a tokenizer there is no text */
        told_release(&told);
        causal_session_destroy(session);
    }
    told_release(&all);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_into_its_last_position),
        cmocka_unit_test(test_a_prompt_that_fills_the_context),
        cmocka_unit_test(test_greedy_words),
        cmocka_unit_test(test_side_by_side_as_alone),
        cmocka_unit_test(test_the_seed_tells_the_text),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_a_stop_string),
        cmocka_unit_test(test_a_text_goes_on),
        cmocka_unit_test(test_a_prompt_that_is_read_in_part),
        cmocka_unit_test(test_a_long_prompt_tells_how_far_it_is_read),
        cmocka_unit_test(test_an_observer_sees_every_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
