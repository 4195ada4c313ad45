/* Logits of small GPT-2s and Llamas from directories and GGUF files against Transformers', and what
 * must not change them. */
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"

static const char *name; /* of the model that a walk over the instruction sets is about */

static void for_each_model(int threads, void (*body)(const struct compute *compute))
{
    for (int n = 0; causal_golden_names[n]; n++) {
        name = causal_golden_names[n];
        each_isa(threads, body);
    }
}

static void assert_within(const float *actual, const float *expected, int64_t count,
                          double tolerance, const char *what)
{
    const double distance = causal_distance(actual, expected, count);
    if (!(distance <= tolerance))
        fail_msg("%s, %s: logits differ by %.3g, at most %g is right", name, what, distance,
                 tolerance);
}

static void golden_logits(const struct compute *compute)
{
    struct causal_golden golden = causal_golden_open(name);
    const int64_t count = golden.tokens * golden.scene.vocabulary;
    const struct causal_manner manner = {.cache = CACHE_F32};
    float *logits = causal_scene_logits(&golden.scene, compute, &manner, golden.ids, golden.tokens);
    assert_within(logits, golden.logits, count, 1e-4, "the whole text");
    free(logits);
    causal_golden_close(&golden);
}

static void test_golden_logits(void **state)
{
    (void)state;
    for_each_model(2, golden_logits);
}

/* However a text is cut, in calls or in chunks. */
static void parts(const struct compute *compute)
{
    static const struct {
        struct causal_manner manner;
        const char *what;
    } cases[] = {
        {{.parts = {17, 2}}, "the last two for themselves"},
        {{.parts = {1}}, "token by token"},
        {{.parts = {3, 1, 5, 1}}, "in uneven parts"},
        {{.chunk = 4}, "in chunks of four"},
        {{.parts = {7, 12}, .chunk = 5}, "in parts of several chunks"},
        {{.chunk = 1}, "in chunks of one"},
    };
    struct causal_golden golden = causal_golden_open(name);
    const int64_t count = golden.tokens * golden.scene.vocabulary;
    const struct causal_manner manner = {.cache = CACHE_F32};
    float *whole = causal_scene_logits(&golden.scene, compute, &manner, golden.ids, golden.tokens);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        float *logits = causal_scene_logits(&golden.scene, compute, &cases[n].manner, golden.ids,
                                            golden.tokens);
        assert_within(logits, whole, count, 1e-5, cases[n].what);
        free(logits);
    }
    free(whole);
    causal_golden_close(&golden);
}

static void test_parts(void **state)
{
    (void)state;
    for_each_model(1, parts);
}

/* The last logits alone are those among all, and reading without any moves on alike. */
static void wanted(const struct compute *compute)
{
    struct causal_golden golden = causal_golden_open(name);
    const int64_t words = golden.scene.vocabulary, tokens = golden.tokens;
    const struct causal_manner manner = {.parts = {tokens - 2, 2}};
    float *all = causal_scene_logits(&golden.scene, compute, &manner, golden.ids, tokens);
    struct causal_session *session = causal_scene_session(&golden.scene, compute, 1, CACHE_F32);
    const int64_t starts[] = {0, tokens - 2}, rest[] = {0, 2};
    float *last = calloc((size_t)words, sizeof *last);
    struct attn_error error;
    struct causal_input input = {1, NULL, starts, golden.ids, CAUSAL_NONE};
    assert_true(causal_session_read(session, &input, NULL, NULL, &error));
    input = (struct causal_input){1, NULL, rest, golden.ids + tokens - 2, CAUSAL_LAST};
    assert_true(causal_session_read(session, &input, NULL, last, &error));
    assert_within(last, all + (tokens - 1) * words, words, 1e-5, "the last logits alone");

    causal_session_truncate(session, 0, tokens - 2);
    assert_int_equal(causal_session_length(session, 0), tokens - 2);
    float *again = calloc((size_t)words, sizeof *again);
    assert_true(causal_session_read(session, &input, NULL, again, &error));
    assert_memory_equal(again, last, (size_t)words * sizeof *last);
    causal_session_destroy(session);
    free(again);
    free(last);
    free(all);
    causal_golden_close(&golden);
}

static void test_wanted_logits(void **state)
{
    (void)state;
    for_each_model(1, wanted);
}

static int64_t likeliest(const float *logits, int64_t count)
{
    int64_t best = 0;
    for (int64_t n = 1; n < count; n++)
        if (logits[n] > logits[best])
            best = n;
    return best;
}

/* Texts of several lengths side by side, read on together, are each as alone; sequences that take
 * no part stay as they are. */
static void batch(const struct compute *compute)
{
    enum { TEXTS = 3, SEQUENCES = 5 };
    struct causal_golden golden = causal_golden_open(name);
    const int64_t words = golden.scene.vocabulary;
    const int64_t starts[] = {0, 4, 5, 16}, slots[] = {0, 2, 4}, next[] = {0, 1, 2, 3};
    const int32_t more[] = {5, 9, 1};
    struct causal_session *session =
        causal_scene_session(&golden.scene, compute, SEQUENCES, CACHE_F32);
    float *together = calloc((size_t)(TEXTS * words), sizeof *together);
    float *further = calloc((size_t)(TEXTS * words), sizeof *further);
    struct attn_error error;
    const struct causal_input first = {TEXTS, slots, starts, golden.ids, CAUSAL_LAST};
    const struct causal_input second = {TEXTS, slots, next, more, CAUSAL_LAST};
    if (!causal_session_read(session, &first, NULL, together, &error) ||
        !causal_session_read(session, &second, NULL, further, &error))
        fail_msg("%s", error.message);
    assert_int_equal(causal_session_length(session, 1), 0);
    assert_int_equal(causal_session_length(session, 4), 12);

    for (int n = 0; n < TEXTS; n++) {
        const int64_t length = starts[n + 1] - starts[n];
        int32_t ids[12];
        memcpy(ids, golden.ids + starts[n], (size_t)length * sizeof *ids);
        ids[length] = more[n];
        const struct causal_manner manner = {.parts = {length, 1}};
        float *alone = causal_scene_logits(&golden.scene, compute, &manner, ids, length + 1);
        const float *expected = alone + (length - 1) * words;
        assert_within(together + n * words, expected, words, 1e-5, "a text beside others");
        assert_within(further + n * words, expected + words, words, 1e-5, "its next token");
        assert_int_equal(likeliest(further + n * words, words), likeliest(expected + words, words));
        free(alone);
    }
    free(further);
    free(together);
    causal_session_destroy(session);
    causal_golden_close(&golden);
}

static void test_batch(void **state)
{
    (void)state;
    for_each_model(2, batch);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    for (int n = 0; causal_golden_names[n]; n++) {
        struct causal_golden golden = causal_golden_open(causal_golden_names[n]);
        const size_t bytes = (size_t)(golden.tokens * golden.scene.vocabulary) * sizeof(float);
        const struct causal_manner manner = {.parts = {13, 1}, .cache = CACHE_F16};
        float *logits[3];
        for (int threads = 1; threads <= 3; threads++) {
            struct compute compute = make_compute(threads);
            logits[threads - 1] =
                causal_scene_logits(&golden.scene, &compute, &manner, golden.ids, golden.tokens);
            compute_destroy(&compute);
        }
        for (int other = 1; other < 3; other++)
            assert_memory_equal(logits[other], logits[0], bytes);
        for (int other = 0; other < 3; other++)
            free(logits[other]);
        causal_golden_close(&golden);
    }
}

/* The bounds that causal_model.h states, which are relative to the largest logit. */
static void cache_types(const struct compute *compute)
{
    static const struct {
        enum cache_type type;
        double bound;
    } cases[] = {{CACHE_F16, 2e-3}, {CACHE_BF16, 1.5e-2}, {CACHE_I8, 4e-2}};
    struct causal_golden golden = causal_golden_open(name);
    const int64_t count = golden.tokens * golden.scene.vocabulary;
    float *zeros = calloc((size_t)count, sizeof *zeros);
    const double largest = causal_distance(golden.logits, zeros, count);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const struct causal_manner manner = {.parts = {9, 1}, .cache = cases[n].type};
        float *logits =
            causal_scene_logits(&golden.scene, compute, &manner, golden.ids, golden.tokens);
        assert_within(logits, golden.logits, count, cases[n].bound * largest,
                      cache_type_name(cases[n].type));
        free(logits);
    }
    free(zeros);
    causal_golden_close(&golden);
}

static void test_cache_types(void **state)
{
    (void)state;
    for_each_model(1, cache_types);
}

/* Products of 16 bits where they are allowed and the CPU has them, else the exact ones. */
static void products_of_16_bits(const struct compute *compute)
{
    struct causal_golden golden = causal_golden_open(name);
    const int64_t count = golden.tokens * golden.scene.vocabulary;
    const struct causal_manner manner = {.cache = CACHE_F32, .precision = ATTN_PRECISION_BF16};
    float *logits = causal_scene_logits(&golden.scene, compute, &manner, golden.ids, golden.tokens);
    assert_within(logits, golden.logits, count, 0.15, "products of 16 bits");
    free(logits);
    causal_golden_close(&golden);
}

static void test_products_of_16_bits(void **state)
{
    (void)state;
    for_each_model(1, products_of_16_bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_logits),         cmocka_unit_test(test_parts),
        cmocka_unit_test(test_wanted_logits),         cmocka_unit_test(test_batch),
        cmocka_unit_test(test_threads_change_no_bit), cmocka_unit_test(test_cache_types),
        cmocka_unit_test(test_products_of_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
