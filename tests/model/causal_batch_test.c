/* Texts side by side in one session: wherever chunks cut them, however many there are, and whatever
 * stood in a sequence before. */
#include <stdlib.h>
#include <string.h>

#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"

static struct causal_session *open_session(const struct causal_scene *scene,
                                           const struct compute *compute, int64_t sequences,
                                           int64_t chunk)
{
    const struct causal_session_settings settings = {
        .sequences = sequences, .capacity = 16, .chunk = chunk, .cache = CACHE_F32};
    struct causal_session *session;
    struct attn_error error;
    if (!causal_session_create(&session, scene->model, compute, &settings, &error))
        fail_msg("%s", error.message);
    return session;
}

static void read_on(struct causal_session *session, const struct causal_input *input, float *logits)
{
    struct attn_error error;
    if (!causal_session_read(session, input, NULL, logits, &error))
        fail_msg("%s", error.message);
}

static float *make_logits(const struct causal_scene *scene, int64_t rows)
{
    float *logits = calloc((size_t)(rows * scene->vocabulary), sizeof *logits);
    assert_non_null(logits);
    return logits;
}

static void for_both_kinds(void (*body)(const struct causal_golden *golden,
                                        const struct compute *compute))
{
    static const char *const names[] = {"gpt2_f32", "llama_f32"};
    struct compute compute = make_compute(1);
    for (int n = 0; n < 2; n++) {
        struct causal_golden golden = causal_golden_open(names[n]);
        assert_true(golden.tokens >= 16);
        body(&golden, &compute);
        causal_golden_close(&golden);
    }
    compute_destroy(&compute);
}

enum { TEXTS = 4, TOKENS = 16 };
static const int64_t starts[] = {0, 5, 6, 13, TOKENS};

/* Of each text read alone, all its logits. */
static float *read_alone(const struct causal_golden *golden, const struct compute *compute)
{
    const int64_t words = golden->scene.vocabulary;
    const struct causal_manner manner = {.cache = CACHE_F32};
    float *all = make_logits(&golden->scene, TOKENS);
    for (int n = 0; n < TEXTS; n++) {
        const int64_t length = starts[n + 1] - starts[n];
        float *logits =
            causal_scene_logits(&golden->scene, compute, &manner, golden->ids + starts[n], length);
        memcpy(all + starts[n] * words, logits, (size_t)(length * words) * sizeof *logits);
        free(logits);
    }
    return all;
}

/* A chunk may have the end of one text and the begin of another, or less than one. */
static void chunks(const struct causal_golden *golden, const struct compute *compute)
{
    const int64_t words = golden->scene.vocabulary;
    float *alone = read_alone(golden, compute);
    float *all = make_logits(&golden->scene, TOKENS), *last = make_logits(&golden->scene, TEXTS);
    for (int64_t chunk = 1; chunk <= TOKENS; chunk++) {
        struct causal_session *session = open_session(&golden->scene, compute, TEXTS, chunk);
        struct causal_input input = {TEXTS, NULL, starts, golden->ids, CAUSAL_ALL};
        read_on(session, &input, all);
        assert_true(causal_distance(all, alone, TOKENS * words) <= 1e-5);
        for (int n = 0; n < TEXTS; n++) {
            assert_int_equal(causal_session_length(session, n), starts[n + 1] - starts[n]);
            causal_session_truncate(session, n, 0);
        }
        input.want = CAUSAL_LAST;
        read_on(session, &input, last);
        for (int n = 0; n < TEXTS; n++)
            assert_true(causal_distance(last + n * words, alone + (starts[n + 1] - 1) * words,
                                        words) <= 1e-5);
        causal_session_destroy(session);
    }
    free(last);
    free(all);
    free(alone);
}

static void test_chunks_cut_texts(void **state)
{
    (void)state;
    for_both_kinds(chunks);
}

/* More than attention takes in one call. */
static void many(const struct causal_golden *golden, const struct compute *compute)
{
    enum { MANY = 150, KINDS = 5 };
    const int64_t words = golden->scene.vocabulary;
    int64_t each[MANY + 1];
    int32_t ids[2][MANY];
    for (int n = 0; n <= MANY; n++)
        each[n] = n;
    for (int n = 0; n < MANY; n++) {
        ids[0][n] = golden->ids[n % KINDS];
        ids[1][n] = golden->ids[n % KINDS + 1];
    }
    struct causal_session *session = open_session(&golden->scene, compute, MANY, 0);
    float *logits = make_logits(&golden->scene, MANY);
    for (int n = 0; n < 2; n++) {
        const struct causal_input input = {MANY, NULL, each, ids[n], CAUSAL_LAST};
        read_on(session, &input, logits);
    }
    const struct causal_manner manner = {.cache = CACHE_F32};
    for (int kind = 0; kind < KINDS; kind++) {
        float *alone = causal_scene_logits(&golden->scene, compute, &manner, golden->ids + kind, 2);
        for (int n = kind; n < MANY; n += KINDS)
            assert_true(causal_distance(logits + n * words, alone + words, words) <= 1e-5);
        free(alone);
    }
    free(logits);
    causal_session_destroy(session);
}

static void test_many_texts(void **state)
{
    (void)state;
    for_both_kinds(many);
}

/* What was cut off is not seen again, to the last place of the cache. */
static void cut(const struct causal_golden *golden, const struct compute *compute)
{
    const int64_t words = golden->scene.vocabulary;
    const struct causal_manner manner = {.cache = CACHE_F32};
    float *alone = causal_scene_logits(&golden->scene, compute, &manner, golden->ids, TOKENS);
    float *all = make_logits(&golden->scene, TOKENS);
    struct causal_session *session = open_session(&golden->scene, compute, 1, 0);
    int32_t others[TOKENS];
    for (int n = 0; n < TOKENS; n++)
        others[n] = (int32_t)((golden->ids[n] + 1) % words);
    for (int64_t kept = 0; kept < TOKENS; kept += 5) {
        const int64_t whole[] = {0, TOKENS}, begin[] = {0, kept}, rest[] = {0, TOKENS - kept};
        causal_session_truncate(session, 0, 0);
        struct causal_input input = {1, NULL, whole, others, CAUSAL_NONE};
        read_on(session, &input, NULL);
        causal_session_truncate(session, 0, 0);
        if (kept > 0) {
            input = (struct causal_input){1, NULL, begin, golden->ids, CAUSAL_NONE};
            read_on(session, &input, NULL);
            input = (struct causal_input){1, NULL, rest, others + kept, CAUSAL_NONE};
            read_on(session, &input, NULL);
            causal_session_truncate(session, 0, kept);
        }
        input = (struct causal_input){1, NULL, rest, golden->ids + kept, CAUSAL_ALL};
        read_on(session, &input, all);
        assert_true(causal_distance(all, alone + kept * words, (TOKENS - kept) * words) <= 1e-5);
        assert_int_equal(causal_session_length(session, 0), TOKENS);
        causal_session_truncate(session, 0, TOKENS + 1); /* more than it holds: nothing */
        assert_int_equal(causal_session_length(session, 0), TOKENS);
    }
    causal_session_destroy(session);
    free(all);
    free(alone);
}

static void test_what_was_cut_off(void **state)
{
    (void)state;
    for_both_kinds(cut);
}

static bool look_on(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    (void)layer, (void)compute, (void)record, (void)error;
    ++*(int *)user;
    return true;
}

static void observed(const struct causal_golden *golden, const struct compute *compute)
{
    int calls = 0;
    const struct model_observer observer = {look_on, &calls, NULL};
    const int64_t five[] = {0, 5};
    const struct causal_input input = {1, NULL, five, golden->ids, CAUSAL_NONE};
    struct attn_error error;
    struct causal_session *session = open_session(&golden->scene, compute, 1, 4);
    assert_false(causal_session_read(session, &input, &observer, NULL, &error));
    assert_message(&error, "5 tokens are to be observed, chunks of this session have 4");
    assert_int_equal(calls, 0);
    assert_int_equal(causal_session_length(session, 0), 0);
    causal_session_destroy(session);

    session = open_session(&golden->scene, compute, 1, 5);
    assert_true(causal_session_read(session, &input, &observer, NULL, &error));
    assert_int_equal(calls, causal_model_get_settings(golden->scene.model)->layers);
    causal_session_destroy(session);
}

static void test_an_observer_sees_one_chunk(void **state)
{
    (void)state;
    for_both_kinds(observed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_cut_texts),
        cmocka_unit_test(test_many_texts),
        cmocka_unit_test(test_what_was_cut_off),
        cmocka_unit_test(test_an_observer_sees_one_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
