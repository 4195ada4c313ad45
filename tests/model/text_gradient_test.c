/* How what a model tells depends on its attention weights, against PyTorch's autograd. */
#include "model/text_gradient.h"

#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "text_gradient_scene.h"

/* [layers][heads][tokens][tokens], newly allocated. */
static float *gradient_of(const struct gradient_scene *scene, const struct compute *compute,
                          struct gradient_subject *subject)
{
    const struct text_model_settings *settings = text_model_get_settings(scene->model);
    const size_t tokens = scene->encoding.token_count;
    struct gradient_watch watch = {.stop = -1};
    struct attn_error error;
    watch.gradient =
        calloc((size_t)(settings->layers * settings->heads) * tokens * tokens, sizeof(float));
    assert_non_null(watch.gradient);
    if (!gradient_scene_run(scene, compute, &watch, subject, &error))
        fail_msg("%s", error.message);
    assert_int_equal(watch.next, -1);
    return watch.gradient;
}

static double norm_of(const float *a, const float *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t n = 0; n < count; n++) {
        const double difference = (double)a[n] - (b ? (double)b[n] : 0.0);
        sum += difference * difference;
    }
    return sqrt(sum);
}

/* Each layer's numbers are off by at most `tolerance` of their norm. */
static void assert_layers(const float *actual, const float *expected, int64_t layers, int64_t count,
                          double tolerance, const char *what)
{
    for (int64_t n = 0; n < layers; n++, actual += count, expected += count) {
        const double error = norm_of(actual, expected, count) / norm_of(expected, NULL, count);
        if (!(error <= tolerance))
            fail_msg("%s: layer %d is off by %.3g of its norm, at most %g is right", what, (int)n,
                     error, tolerance);
    }
}

static json_t *golden_file; /* what the walks below are about */
static float *golden_numbers;

static int read_golden(void **state)
{
    (void)state;
    size_t size;
    golden_file = test_data_json("golden/text_gradient.json");
    golden_numbers = case_file_bytes("golden/text_gradient.bin", &size);
    return 0;
}

static int release_golden(void **state)
{
    (void)state;
    json_decref(golden_file);
    free(golden_numbers);
    return 0;
}

static int64_t whole(const json_t *array, size_t index)
{
    return json_integer_value(json_array_get(array, index));
}

static void check_golden(const json_t *golden, const struct gradient_scene *scene,
                         const struct compute *compute)
{
    const char *name = json_string_value(case_field(golden, "model", NULL));
    const json_t *shape = case_field(golden, "shape", NULL),
                 *id = case_field(golden, "token", NULL);
    const int64_t begin = json_integer_value(case_field(golden, "begin", NULL));
    struct gradient_subject subject;
    float *gradient = gradient_of(scene, compute, &subject);
    assert_layers(gradient, golden_numbers + begin, whole(shape, 0),
                  whole(shape, 1) * whole(shape, 2) * whole(shape, 3), 1e-5, name);
    const double y = json_number_value(case_field(golden, "y", NULL));
    assert_true(fabs(subject.value - y) <= 1e-5 * fabs(y));
    if (json_is_null(id)) {
        assert_int_equal(subject.target, GRADIENT_EMBEDDING);
    } else {
        assert_int_equal(subject.target, GRADIENT_NEXT_WORD);
        assert_int_equal(subject.id, json_integer_value(id));
    }
    free(gradient);
}

static void golden_of_isa(const struct compute *compute)
{
    gradient_scene_each(golden_file, check_golden, compute);
}

static void test_golden(void **state)
{
    (void)state;
    each_isa(2, golden_of_isa);
}

/* With CBLAS's last bits. The time in attention is told on the way. */
static void check_threads(const json_t *golden, const struct gradient_scene *scene,
                          const struct compute *compute)
{
    (void)compute;
    const char *name = json_string_value(case_field(golden, "model", NULL));
    const json_t *shape = case_field(golden, "shape", NULL);
    const int64_t layers = whole(shape, 0);
    const int64_t count = whole(shape, 1) * whole(shape, 2) * whole(shape, 3);
    float *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        struct compute own = make_compute(threads);
        double seconds = 0.0;
        own.attention_seconds = &seconds;
        struct gradient_subject subject;
        float *gradient = gradient_of(scene, &own, &subject);
        compute_destroy(&own);
        assert_true(seconds > 0.0);
        if (first) {
            assert_layers(gradient, first, layers, count, 1e-6, name);
            free(gradient);
        } else {
            first = gradient;
        }
    }
    free(first);
}

static void test_threads(void **state)
{
    (void)state;
    gradient_scene_each(golden_file, check_threads, NULL);
}

enum { SEEN = 5000 }; /* numbers of a layer, at most */

static int64_t copy_numbers(const attn_tensor *tensor, float *to)
{
    int64_t count = 0;
    for (int64_t h = 0; h < tensor->shape[1]; h++)
        for (int64_t i = 0; i < tensor->shape[2]; i++)
            for (int64_t c = 0; c < tensor->shape[3]; c++)
                to[count++] = gradient_scene_at(tensor, h, i, c);
    return count;
}

/* What attention computed with, and the weights that libattn makes of it, into numbers[layer]. */
static bool see(float (*numbers)[SEEN], int64_t layer, const struct compute *compute,
                const struct attention_record *record)
{
    const attn_tensor *const tensors[] = {&record->q, &record->k, &record->v, &record->stats};
    const int64_t heads = record->q.shape[1], tokens = record->q.shape[2];
    float *to = numbers[layer];
    for (int n = 0; n < 4; n++)
        to += copy_numbers(tensors[n], to);
    assert_true(to + heads * tokens * tokens <= numbers[layer] + SEEN);
    const attn_tensor weights = attn_tensor_packed(to, ATTN_F32, 1, heads, tokens, tokens);
    assert_int_equal(attn_weights(compute->attention, record->params, &record->q, &record->k,
                                  &record->stats, NULL, &weights),
                     ATTN_SUCCESS);
    return true;
}

static bool see_reading(void *user, int64_t layer, const struct compute *compute,
                        const struct attention_record *record, struct attn_error *error)
{
    (void)error;
    return see(user, layer, compute, record);
}

static bool see_gradient(void *user, int64_t layer, const struct compute *compute,
                         const struct attention_record *record, const attn_tensor *d_o,
                         struct attn_error *error)
{
    (void)d_o, (void)error;
    return see(user, layer, compute, record);
}

static void check_record(const json_t *golden, const struct gradient_scene *scene,
                         const struct compute *compute)
{
    const char *name = json_string_value(case_field(golden, "model", NULL));
    const int64_t layers = text_model_get_settings(scene->model)->layers;
    float(*read)[SEEN] = calloc((size_t)layers, sizeof *read);
    float(*again)[SEEN] = calloc((size_t)layers, sizeof *again);
    assert_true(read && again);
    const struct model_observer reader = {.observe = see_reading, .user = read};
    const struct gradient_observer observer = {see_gradient, again};
    struct gradient_subject subject;
    struct attn_error error;
    if (!text_model_read(scene->model, compute, &scene->encoding, &reader, NULL, &error) ||
        !text_gradient_run(scene->model, compute, &scene->encoding, &observer, &subject, &error))
        fail_msg("%s", error.message);
    const double tolerance = scene->encoding.token_count > 1 ? 0.0 : 1e-6;
    assert_layers(again[0], read[0], layers, SEEN, tolerance, name);
    free(read);
    free(again);
}

static void records_of_isa(const struct compute *compute)
{
    gradient_scene_each(golden_file, check_record, compute);
}

/* Layers are shown what text_model_read shows of them, bit for bit but where a text of one token
 * takes attn_decode there. */
static void test_records(void **state)
{
    (void)state;
    each_isa(1, records_of_isa);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, read_golden, release_golden);
}
