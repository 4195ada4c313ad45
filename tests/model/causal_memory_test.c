/* Each allocation fails in turn: opening a model that tells the next token, and making a session.
 */
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
        assert_true(allocation_sweep(create_once, &attempt) >= 5);
        compute_destroy(&attempt.compute);
        causal_golden_close(&attempt.golden);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
