/* New models: how they begin, that they learn, and that they can be written and opened again. */
#include "model/language_model.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/bert.h"
#include "scratch_folder.h"

static struct language_model_settings small(enum language_model_kind kind)
{
    return (struct language_model_settings){.kind = kind,
                                            .vocabulary = 50,
                                            .layers = 2,
                                            .heads = 4,
                                            .width = 32,
                                            .context = 16,
                                            .dropout = 0.0f};
}

static struct language_model *create(const struct language_model_settings *settings, uint64_t seed)
{
    struct language_model *model;
    struct attn_error error;
    if (!language_model_create(&model, settings, seed, &error))
        fail_msg("%s", error.message);
    return model;
}

static bool same_values(struct language_model *a, struct language_model *b)
{
    const struct parameters *x = language_model_parameters(a), *y = language_model_parameters(b);
    return x->count == y->count &&
           memcmp(x->values, y->values, (size_t)x->count * sizeof(float)) == 0;
}

static double deviation(const float *values, int64_t count)
{
    double square = 0.0, sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)values[i];
        square += (double)values[i] * (double)values[i];
    }
    assert_true(fabs(sum / (double)count) < 0.002);
    return sqrt(square / (double)count);
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static bool is_norm(const char *name)
{
    return strstr(name, "LayerNorm.") || strstr(name, ".ln_");
}

static void test_how_models_begin(void **state)
{
    (void)state;
    for (int kind = LANGUAGE_MODEL_GPT2; kind <= LANGUAGE_MODEL_BERT; kind++) {
        struct language_model_settings settings = small((enum language_model_kind)kind);
        settings.width = 64;
        struct language_model *model = create(&settings, 5), *same = create(&settings, 5),
                              *other = create(&settings, 6);
        assert_true(same_values(model, same));
        assert_false(same_values(model, other));
        assert_int_equal(language_model_get_settings(model)->inner, 256);

        const struct parameters *parameters = language_model_parameters(model);
        for (size_t n = 0; n < parameters->item_count; n++) {
            const struct parameter *item = &parameters->items[n];
            const float *values = parameters->values + item->begin;
            const bool gain = is_norm(item->name) && ends_with(item->name, "weight");
            if (item->rank == 1)
                for (int64_t i = 0; i < item->count; i++)
                    assert_true(values[i] == (gain ? 1.0f : 0.0f));
            else if (item->count >= 64 * 64) {
                /* Two layers add four times. */
                const double expected = ends_with(item->name, "c_proj.weight") ? 0.01 : 0.02;
                const double found = deviation(values, item->count);
                if (!(fabs(found / expected - 1.0) < 0.05))
                    fail_msg("%s begins with a deviation of %g", item->name, found);
            }
        }
        language_model_close(model);
        language_model_close(same);
        language_model_close(other);
    }
    language_model_close(NULL);
}

static void test_settings_are_checked(void **state)
{
    (void)state;
    const struct language_model_settings good = small(LANGUAGE_MODEL_GPT2);
    struct {
        struct language_model_settings settings;
        const char *message;
    } cases[] = {
        {good, "vocabulary is 0, but must be in 1..1000000"},
        {good, "number of layers is 1001, but must be in 1..1000"},
        {good, "number of heads is 0"},
        {good, "width is -32"},
        {good, "inner width is -1, but must be in 1..4000000"},
        {good, "context is 0"},
        {good, "5 heads do not divide a width of 32"},
        {good, "dropout is 1, but must be at least 0 and below 1"},
        {good, "dropout is nan"},
    };
    cases[0].settings.vocabulary = 0;
    cases[1].settings.layers = 1001;
    cases[2].settings.heads = 0;
    cases[3].settings.width = -32;
    cases[4].settings.inner = -1;
    cases[5].settings.context = 0;
    cases[6].settings.heads = 5;
    cases[7].settings.dropout = 1.0f;
    cases[8].settings.dropout = NAN;
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct language_model *model;
        struct attn_error error;
        assert_false(language_model_create(&model, &cases[n].settings, 1, &error));
        assert_null(model);
        assert_message(&error, cases[n].message);
    }
}

/* Plain gradient descent on two sequences that tell what comes next. */
static double descend(struct language_model *model, const struct compute *compute, int steps)
{
    const int64_t starts[] = {0, 12, 20};
    int32_t ids[20], labels[20];
    for (int t = 0; t < 20; t++) {
        ids[t] = (int32_t)(t < 12 ? 3 * t % 11 : 20 + t * t % 13);
        labels[t] = t == 19 ? CROSS_ENTROPY_IGNORE : (int32_t)(t < 11 ? 3 * (t + 1) % 11 : 30);
    }
    const struct language_batch batch = {{2, starts}, ids, labels};
    const struct language_model_step step = {.gradient_scale = 1.0f / 19.0f};
    const struct parameters *parameters = language_model_parameters(model);
    struct cross_entropy sum = {0};
    struct attn_error error;
    for (int n = 0; n < steps; n++) {
        sum = (struct cross_entropy){0};
        assert_true(language_model_learn(model, compute, &batch, &step, &sum, &error));
        for (int64_t i = 0; i < parameters->count; i++)
            parameters->values[i] -= 0.5f * parameters->gradients[i];
    }
    return sum.loss / (double)sum.counts;
}

static void test_models_learn(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int kind = LANGUAGE_MODEL_GPT2; kind <= LANGUAGE_MODEL_BERT; kind++) {
        const struct language_model_settings settings = small((enum language_model_kind)kind);
        struct language_model *model = create(&settings, 5);
        const double first = descend(model, &compute, 1), last = descend(model, &compute, 200);
        assert_true(fabs(first - log(50.0)) < 0.2);
        assert_true(last < 0.1);
        language_model_close(model);
    }
    compute_destroy(&compute);
}

static void write_into(struct language_model *model, const char *folder, int32_t special_id)
{
    struct attn_error error;
    if (!language_model_write(model, folder, special_id, &error))
        fail_msg("%s", error.message);
}

static void test_written_models_are_opened(void **state)
{
    (void)state;
    for (int kind = LANGUAGE_MODEL_GPT2; kind <= LANGUAGE_MODEL_BERT; kind++) {
        struct language_model_settings settings = small((enum language_model_kind)kind);
        settings.inner = 40;
        settings.dropout = 0.15f;
        struct language_model *model = create(&settings, 9), *opened;
        char *folder = scratch_folder_create();
        write_into(model, folder, 7);
        assert_int_equal(scratch_count(folder), 2);
        struct attn_error error;
        if (!language_model_open(&opened, folder, 1, &error))
            fail_msg("%s", error.message);
        assert_true(same_values(model, opened));
        const struct language_model_settings *read = language_model_get_settings(opened);
        assert_int_equal(read->kind, settings.kind);
        assert_int_equal(read->vocabulary, settings.vocabulary);
        assert_int_equal(read->layers, settings.layers);
        assert_int_equal(read->heads, settings.heads);
        assert_int_equal(read->width, settings.width);
        assert_int_equal(read->inner, settings.inner);
        assert_int_equal(read->context, settings.context);
        assert_true(read->dropout == settings.dropout);
        write_into(opened, folder, -1);
        assert_int_equal(scratch_count(folder), 2);
        char *config = scratch_read_text(folder, "config.json");
        assert_non_null(strstr(config, "_token_id\": null"));
        free(config);
        language_model_close(model);
        language_model_close(opened);
        scratch_folder_remove(folder);
    }
}

/* The encoder that reads for `attn look` sees what a BERT has learned. */
static void test_a_written_bert_is_an_encoder(void **state)
{
    (void)state;
    const struct language_model_settings settings = small(LANGUAGE_MODEL_BERT);
    struct language_model *model = create(&settings, 9);
    char *folder = scratch_folder_create();
    write_into(model, folder, 0);
    struct bert *bert;
    struct attn_error error;
    if (!bert_open(&bert, folder, &error))
        fail_msg("%s", error.message);
    assert_int_equal(bert_get_config(bert)->types, 2);
    bert_close(bert);
    language_model_close(model);
    scratch_folder_remove(folder);
}

static void test_what_cannot_be_written(void **state)
{
    (void)state;
    const struct language_model_settings settings = small(LANGUAGE_MODEL_GPT2);
    struct language_model *model = create(&settings, 9), *other = create(&settings, 10), *opened;
    char *folder = scratch_folder_create();
    write_into(model, folder, -1);

    /* A limit on file sizes stands in for a disk that fills. */
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit tight = {.rlim_cur = 10000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    struct attn_error error;
    bool written = language_model_write(other, folder, -1, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_false(written);
    assert_message(&error, "model.safetensors: cannot be written: ");
    assert_int_equal(scratch_count(folder), 2);
    assert_true(language_model_open(&opened, folder, 1, &error));
    assert_true(same_values(model, opened));

    assert_false(language_model_write(model, "/nowhere", -1, &error));
    assert_message(&error, "there is no such folder");
    language_model_close(model);
    language_model_close(other);
    language_model_close(opened);
    scratch_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_models_begin),
        cmocka_unit_test(test_settings_are_checked),
        cmocka_unit_test(test_models_learn),
        cmocka_unit_test(test_written_models_are_opened),
        cmocka_unit_test(test_a_written_bert_is_an_encoder),
        cmocka_unit_test(test_what_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
