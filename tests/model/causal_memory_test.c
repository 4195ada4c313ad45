/* Each allocation fails in turn: opening a model that tells the next token, and making a session.
 * Reading asks for none. */
#include <stdlib.h>

#include "allocation_sweep.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"

static bool open_once(void *user, struct attn_error *error)
{
    struct causal_model *model;
    const bool done = causal_model_open(&model, user, error);
    if (!done)
        assert_null(model);
    causal_model_close(model);
    return done;
}

static void test_open(void **state)
{
    (void)state;
    for (int n = 0; causal_golden_names[n]; n++) {
        struct causal_golden golden = causal_golden_open(causal_golden_names[n]);
        assert_true(allocation_sweep(open_once, golden.scene.source) >= 8);
        causal_golden_close(&golden);
    }
}

struct session_attempt {
    struct causal_golden golden;
    struct compute compute;
};

static bool create_once(void *user, struct attn_error *error)
{
    const struct session_attempt *attempt = user;
    const struct causal_session_settings settings = {
        .sequences = 2, .capacity = 20, .cache = CACHE_I8};
    struct causal_session *session;
    const bool done = causal_session_create(&session, attempt->golden.scene.model,
                                            &attempt->compute, &settings, error);
    if (!done)
        assert_null(session);
    causal_session_destroy(session);
    return done;
}

static void test_sessions(void **state)
{
    (void)state;
    const char *const names[] = {"gpt2_f32", "llama_blocks.gguf"};
    for (int n = 0; n < 2; n++) {
        struct session_attempt attempt = {.golden = causal_golden_open(names[n]),
                                          .compute = make_compute(1)};
        assert_true(allocation_sweep(create_once, &attempt) >= 7);
        compute_destroy(&attempt.compute);
        causal_golden_close(&attempt.golden);
    }
}

struct reading {
    struct causal_session *session;
    struct causal_input input;
    float *logits;
};

static bool read_once(void *user, struct attn_error *error)
{
    const struct reading *reading = user;
    for (int64_t n = 0; n < reading->input.sequences; n++)
        causal_session_truncate(reading->session, n, 0);
    return causal_session_read(reading->session, &reading->input, NULL, reading->logits, error);
}

/* Once attention has what it keeps, nothing is asked for. */
static void test_reading(void **state)
{
    (void)state;
    const int64_t starts[] = {0, 11, 16};
    for (int n = 0; causal_golden_names[n]; n++) {
        struct causal_golden golden = causal_golden_open(causal_golden_names[n]);
        struct compute compute = make_compute(1);
        const struct causal_session_settings settings = {
            .sequences = 2, .capacity = 16, .chunk = 10, .cache = CACHE_I8};
        struct attn_error error;
        struct reading reading = {.input = {2, NULL, starts, golden.ids, CAUSAL_ALL}};
        reading.logits = calloc((size_t)(16 * golden.scene.vocabulary), sizeof *reading.logits);
        if (!causal_session_create(&reading.session, golden.scene.model, &compute, &settings,
                                   &error) ||
            !read_once(&reading, &error))
            fail_msg("%s", error.message);
        assert_int_equal(allocation_sweep(read_once, &reading), 0);
        causal_session_destroy(reading.session);
        free(reading.logits);
        compute_destroy(&compute);
        causal_golden_close(&golden);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
