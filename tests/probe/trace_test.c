#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "probe/trace.h"

enum { TOKENS = 8 }; /* of which Transformers' attention is known */

/* A text that is read in parts while a trace looks on. */
struct reading {
    struct causal_golden golden;
    struct compute compute;
    struct causal_session *session;
    const struct causal_settings *settings;
};

/* In place: the session knows where compute is. */
static void reading_open(struct reading *reading, const char *name)
{
    *reading = (struct reading){.golden = causal_golden_open(name), .compute = make_compute(1)};
    reading->session =
        causal_scene_session(&reading->golden.scene, &reading->compute, 1, CACHE_F32);
    reading->settings = causal_model_get_settings(reading->golden.scene.model);
}

static void reading_close(struct reading *reading)
{
    causal_session_destroy(reading->session);
    compute_destroy(&reading->compute);
    causal_golden_close(&reading->golden);
}

/* Tokens in parts, the last one a token at a time. */
static bool read_traced(const struct reading *reading, int64_t first_part, int64_t part,
                        struct trace *trace, struct attn_error *error)
{
    const struct model_observer observer = trace_observer(trace);
    bool done = true;
    causal_session_truncate(reading->session, 0, 0);
    for (int64_t begin = 0; done && begin < TOKENS;) {
        const int64_t wanted = begin == 0 ? first_part : part;
        const int64_t count = wanted < TOKENS - begin ? wanted : TOKENS - begin;
        const int64_t starts[] = {0, count};
        const struct causal_input input = {
            .sequences = 1, .starts = starts, .ids = reading->golden.ids + begin};
        done = causal_session_read(reading->session, &input, &observer, NULL, error);
        begin += count;
    }
    return done;
}

static double expected_weight(const struct reading *reading, int64_t layer, int64_t row,
                              int64_t key)
{
    const int64_t heads = reading->settings->heads;
    const int64_t begin = layer == TRACE_MEAN ? 0 : layer;
    const int64_t end = layer == TRACE_MEAN ? reading->settings->layers : layer + 1;
    double sum = 0.0;
    for (int64_t n = begin * heads; n < end * heads; n++)
        sum += (double)reading->golden.attention[(n * TOKENS + row) * TOKENS + key];
    return sum / (double)((end - begin) * heads);
}

/* Every row of every layer, and of their mean, is what Transformers has, however the text came. */
static void test_rows_of_the_reference(void **state)
{
    (void)state;
    const struct {
        int64_t first_part, part, first;
    } cases[] = {{8, 1, 0}, {1, 1, 0}, {5, 2, 0}, {5, 1, 4}, {4, 4, 6}, {3, 1, 7}};
    for (const char *const *name = causal_golden_names; *name; name++) {
        if (!strstr(*name, "_f32"))
            continue;
        struct reading reading;
        reading_open(&reading, *name);
        for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
            struct trace *trace;
            struct attn_error error;
            assert_true(trace_create(&trace, reading.settings, cases[n].first, &error));
            if (!read_traced(&reading, cases[n].first_part, cases[n].part, trace, &error))
                fail_msg("%s", error.message);
            assert_int_equal(trace_tokens(trace), TOKENS);
            for (int64_t layer = TRACE_MEAN; layer < reading.settings->layers; layer++)
                for (int64_t row = cases[n].first; row < TOKENS; row++) {
                    float weights[TOKENS];
                    trace_row(trace, layer, row, weights);
                    for (int64_t key = 0; key <= row; key++)
                        assert_true(fabs((double)weights[key] -
                                         expected_weight(&reading, layer, row, key)) <= 2e-6);
                }
            trace_destroy(trace);
        }
        reading_close(&reading);
    }
}

/* Rows are averaged, columns summed, and what belongs nowhere is left out. */
static void test_words(void **state)
{
    (void)state;
    struct reading reading;
    reading_open(&reading, "gpt2_f32");
    struct trace *trace;
    struct attn_error error;
    assert_true(trace_create(&trace, reading.settings, 3, &error));
    assert_true(read_traced(&reading, 4, 1, trace, &error));

    enum { ROWS = 3, COLUMNS = 4 };
    const int32_t row_of[TOKENS] = {-1, -1, -1, 0, 1, 1, -1, 2};
    const int32_t column_of[TOKENS] = {-1, 0, 0, 1, 2, 2, -1, 3};
    float merged[ROWS * COLUMNS];
    for (int64_t layer = TRACE_MEAN; layer < reading.settings->layers; layer++) {
        assert_true(trace_merge(trace, layer, row_of, ROWS, column_of, COLUMNS, merged, &error));
        for (int32_t row = 0; row < ROWS; row++)
            for (int32_t column = 0; column < COLUMNS; column++) {
                double sum = 0.0;
                int queries = 0;
                for (int64_t i = 0; i < TOKENS; i++) {
                    queries += row_of[i] == row;
                    for (int64_t j = 0; row_of[i] == row && j <= i; j++)
                        if (column_of[j] == column)
                            sum += expected_weight(&reading, layer, i, j);
                }
                assert_true(fabs((double)merged[row * COLUMNS + column] - sum / queries) <= 4e-6);
            }
    }
    trace_destroy(trace);
    reading_close(&reading);
}

/* Longer than the rows whose weights are rebuilt at once: each still sums to one. */
static void test_rows_beyond_a_tile(void **state)
{
    (void)state;
    struct reading reading;
    reading_open(&reading, "llama_f32");
    const int64_t context = reading.settings->context;
    int32_t *ids = calloc((size_t)context, sizeof *ids);
    float *weights = calloc((size_t)context, sizeof *weights);
    struct trace *trace;
    struct attn_error error;
    assert_true(ids && weights && context > 2);
    for (int64_t i = 0; i < context; i++)
        ids[i] = (int32_t)(i * 7 % reading.settings->vocabulary);
    assert_true(trace_create(&trace, reading.settings, 1, &error));
    const struct model_observer observer = trace_observer(trace);
    const int64_t starts[] = {0, context};
    const struct causal_input input = {.sequences = 1, .starts = starts, .ids = ids};
    if (!causal_session_read(reading.session, &input, &observer, NULL, &error))
        fail_msg("%s", error.message);
    assert_int_equal(trace_tokens(trace), context);
    for (int64_t row = 1; row < context; row++) {
        double sum = 0.0;
        trace_row(trace, 0, row, weights);
        for (int64_t key = 0; key <= row; key++)
            sum += (double)weights[key];
        assert_true(fabs(sum - 1.0) <= 1e-5);
    }
    trace_destroy(trace);
    free(weights);
    free(ids);
    reading_close(&reading);
}

static bool trace_once(void *user, struct attn_error *error)
{
    const struct reading *reading = user;
    const int32_t of[TOKENS] = {0};
    float merged;
    struct trace *trace;
    bool done = trace_create(&trace, reading->settings, 0, error);
    done = done && read_traced(reading, 5, 1, trace, error) &&
           trace_merge(trace, 0, of, 1, of, 1, &merged, error);
    trace_destroy(trace);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    struct reading reading;
    reading_open(&reading, "gpt2_f32");
    assert_true(allocation_sweep(trace_once, &reading) >= 6);
    reading_close(&reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_the_reference),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_rows_beyond_a_tile),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
