/* What a text is read for beside its attention, and what an observer is told of a layer. */
#include "model/text_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/bert.h"

enum { TOKENS = 12 };

static const struct {
    const char *name, *projection; /* of layer 1 */
    bool is_transposed;            /* [in][out] in the file */
    int64_t heads, key_heads;
} models[] = {
    {"causal/gpt2_f32", "transformer.h.1.attn.c_proj.weight", true, 3, 3},
    {"causal/llama_f32", "model.layers.1.self_attn.o_proj.weight", false, 4, 2},
    {"masked_words", "bert.encoder.layer.1.attention.output.dense.weight", false, 4, 4},
};
enum { MODELS = sizeof models / sizeof models[0] };

/* A model and a text of some of its words; not to be moved. */
struct scene {
    char *path;
    struct model_source *source;
    struct text_model *model;
    struct token tokens[TOKENS];
    struct encoding encoding;
};

static void open_scene(struct scene *scene, const char *name)
{
    char file[128];
    snprintf(file, sizeof file, "models/%s", name);
    *scene = (struct scene){.path = test_data_path(file)};
    struct attn_error error;
    if (!model_source_open(&scene->source, scene->path, &error) ||
        !text_model_open(&scene->model, scene->source, &error))
        fail_msg("%s", error.message);
    for (int t = 0; t < TOKENS; t++)
        scene->tokens[t].id = (t * 7 + 2) % 31;
    scene->encoding = (struct encoding){.tokens = scene->tokens, .token_count = TOKENS};
}

static void close_scene(struct scene *scene)
{
    text_model_close(scene->model);
    model_source_close(scene->source);
    free(scene->path);
}

static void read_text(const struct scene *scene, const struct compute *compute,
                      const struct model_observer *observer, const struct text_results *results)
{
    struct attn_error error;
    if (!text_model_read(scene->model, compute, &scene->encoding, observer, results, &error))
        fail_msg("%s", error.message);
}

static void logits(const struct compute *compute)
{
    for (int n = 0; n < 2; n++) {
        struct causal_golden golden = causal_golden_open(models[n].name + strlen("causal/"));
        const int64_t words = golden.scene.vocabulary;
        struct scene scene;
        open_scene(&scene, models[n].name);
        float *told = calloc((size_t)words, sizeof *told);
        assert_non_null(told);
        for (int t = 0; t < TOKENS; t++)
            scene.tokens[t].id = golden.ids[t];
        for (size_t count = 1; count <= TOKENS; count += TOKENS - 1) {
            const struct text_results results = {.logits = told};
            scene.encoding.token_count = count;
            read_text(&scene, compute, NULL, &results);
            assert_near(told, golden.logits + (int64_t)(count - 1) * words, (size_t)words, 1e-4);
        }
        free(told);
        close_scene(&scene);
        causal_golden_close(&golden);
    }
}

static void test_logits_of_the_next_word(void **state)
{
    (void)state;
    each_isa(2, logits);
}

/* Bit for bit those of the model itself. */
static void hidden(const struct compute *compute)
{
    struct scene scene;
    open_scene(&scene, "masked_words");
    const size_t numbers = TOKENS * (size_t)text_model_get_settings(scene.model)->width;
    float *told = calloc(numbers, sizeof *told), *expected = calloc(numbers, sizeof *expected);
    int32_t ids[TOKENS], types[TOKENS];
    for (int t = 0; t < TOKENS; t++) {
        ids[t] = scene.tokens[t].id;
        types[t] = scene.tokens[t].type = t > 5;
    }
    const int64_t starts[] = {0, TOKENS};
    const struct bert_input input = {{1, starts}, ids, types};
    struct bert *bert;
    struct attn_error error;
    assert_true(bert_open(&bert, scene.path, &error));
    assert_true(bert_forward(bert, compute, &input, expected, NULL, &error));
    bert_close(bert);
    const struct text_results results = {.hidden = told};
    read_text(&scene, compute, NULL, &results);
    assert_memory_equal(told, expected, numbers * sizeof *told);
    free(told);
    free(expected);
    close_scene(&scene);
}

static void test_last_hidden_states(void **state)
{
    (void)state;
    each_isa(2, hidden);
}

static void test_refused(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    static float numbers[TOKENS * 64];
    const struct text_results logits_only = {.logits = numbers}, hidden_only = {.hidden = numbers};
    for (int n = 0; n < MODELS; n++) {
        struct scene scene;
        open_scene(&scene, models[n].name);
        const bool is_bert = text_model_get_settings(scene.model)->kind == MODEL_BERT;
        struct attn_error error;
        assert_false(text_model_read(scene.model, &compute, &scene.encoding, NULL,
                                     is_bert ? &logits_only : &hidden_only, &error));
        assert_message(&error, is_bert ? "a BERT tells no next word"
                                       : "last hidden states are told of a BERT only");
        close_scene(&scene);
    }
    compute_destroy(&compute);
}

/* What an observer is told of layer 1. */
struct watch {
    int model;
    float *projection; /* [width][inner], from the file */
    int calls;
};

static float *read_projection(const struct scene *scene, int model, int64_t width, int64_t inner)
{
    struct checkpoint *checkpoint;
    struct attn_error error;
    assert_true(checkpoint_open(&checkpoint, scene->path, &error));
    const struct stored_tensor *tensor = checkpoint_find(checkpoint, models[model].projection);
    assert_non_null(tensor);
    assert_int_equal(tensor->elements, width * inner);
    float *stored = calloc((size_t)(width * inner), sizeof *stored);
    float *projection = calloc((size_t)(width * inner), sizeof *projection);
    assert_true(stored && projection && stored_tensor_to_floats(tensor, stored, &error));
    for (int64_t o = 0; o < width; o++)
        for (int64_t i = 0; i < inner; i++)
            projection[o * inner + i] =
                stored[models[model].is_transposed ? i * width + o : o * inner + i];
    free(stored);
    checkpoint_close(checkpoint);
    return projection;
}

/* The product with the stored matrix, without its bias: zeros stay zeros. */
static void check_projection(const struct watch *watch, const struct compute *compute,
                             const struct attention_output *output, int64_t inner)
{
    enum { ROWS = 5, MOST = 64 };
    float blended[ROWS * MOST] = {0}, y[ROWS * MOST], expected[ROWS * MOST];
    assert_true(inner <= MOST && output->width <= MOST);
    for (int64_t n = inner; n < ROWS * inner; n++)
        blended[n] = sinf((float)n * 1.3f);
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t o = 0; o < output->width; o++) {
            double sum = 0.0;
            for (int64_t i = 0; i < inner; i++)
                sum += (double)blended[row * inner + i] * (double)watch->projection[o * inner + i];
            expected[row * output->width + o] = (float)sum;
        }
    for (int64_t n = 0; n < ROWS * output->width; n++)
        y[n] = NAN;
    output->project(output->user, compute, ROWS, blended, y);
    assert_near(y, expected, (size_t)(ROWS * output->width), 1e-5);
}

/* q, k, v and params make the statistics again. That v is blended shows in
 * nn/attention_change_test.c. */
static bool observe(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    (void)error;
    struct watch *watch = user;
    const int64_t heads = models[watch->model].heads, key_heads = models[watch->model].key_heads;
    const int64_t d = record->q.shape[3];
    assert_int_equal(record->q.shape[1], heads);
    assert_int_equal(record->k.shape[1], key_heads);
    assert_memory_equal(record->v.shape, record->k.shape, sizeof record->v.shape);
    assert_true(record->v.data != record->k.data);

    static float o[TOKENS * 64], stats[2 * TOKENS * 8];
    const attn_tensor blended = attn_tensor_packed(o, ATTN_F32, 1, heads, TOKENS, d);
    const attn_tensor again = attn_tensor_packed(stats, ATTN_F32, 1, heads, TOKENS, 2);
    assert_int_equal(attn_forward(compute->attention, record->params, &record->q, &record->k,
                                  &record->v, &blended, &again),
                     ATTN_SUCCESS);
    assert_memory_equal(stats, record->stats.data, (size_t)(2 * TOKENS * heads) * sizeof *stats);
    if (layer == 1)
        check_projection(watch, compute, &record->output, heads * d);
    watch->calls++;
    return true;
}

static void records(const struct compute *compute)
{
    for (int n = 0; n < MODELS; n++) {
        struct scene scene;
        open_scene(&scene, models[n].name);
        const struct text_model_settings *settings = text_model_get_settings(scene.model);
        const int64_t inner = settings->width; /* heads·d, in these */
        struct watch watch = {n, read_projection(&scene, n, settings->width, inner), 0};
        const struct model_observer observer = {observe, &watch, NULL};
        read_text(&scene, compute, &observer, NULL);
        assert_int_equal(watch.calls, settings->layers);
        free(watch.projection);
        close_scene(&scene);
    }
}

static void test_records(void **state)
{
    (void)state;
    each_isa(2, records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_of_the_next_word),
        cmocka_unit_test(test_last_hidden_states),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
