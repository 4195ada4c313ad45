#include "bench_training.h"

#include <stdlib.h>
#include <string.h>

#include "bench_run.h"
#include "measure/timing.h"
#include "model/language_model.h"
#include "options.h"
#include "output.h"
#include "peak_memory.h"
#include "train/gradient_norm.h"
#include "train/optimizer.h"

enum {
    OPTION_LAYERS = OPTION_OWN,
    OPTION_HEADS,
    OPTION_DIM,
    OPTION_CTX,
    OPTION_VOCAB,
    OPTION_BATCH,
    OPTION_STEPS
};

static const struct option option_table[] = {
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_JSON,
    OPTION_ENTRY_HELP,
    {"layers", required_argument, NULL, OPTION_LAYERS},
    {"heads", required_argument, NULL, OPTION_HEADS},
    {"dim", required_argument, NULL, OPTION_DIM},
    {"ctx", required_argument, NULL, OPTION_CTX},
    {"vocab", required_argument, NULL, OPTION_VOCAB},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"steps", required_argument, NULL, OPTION_STEPS},
    OPTION_ENTRY_END,
};

struct training_options {
    struct shared_options shared;
    struct language_model_settings model;
    int64_t batch, steps;
};

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct training_options *options = user;
    const struct {
        int option;
        const char *name;
        int64_t maximum;
        int64_t *value;
    } numbers[] = {
        {OPTION_LAYERS, "--layers", 1000, &options->model.layers},
        {OPTION_HEADS, "--heads", 1000, &options->model.heads},
        {OPTION_DIM, "--dim", 1 << 16, &options->model.width},
        {OPTION_CTX, "--ctx", 1 << 20, &options->model.context},
        {OPTION_VOCAB, "--vocab", 1 << 24, &options->model.vocabulary},
        {OPTION_BATCH, "--batch", 1 << 16, &options->batch},
        {OPTION_STEPS, "--steps", 1 << 20, &options->steps},
    };
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        if (numbers[n].option == option)
            return options_integer(numbers[n].name, value, 1, numbers[n].maximum, numbers[n].value,
                                   error);
    return true;
}

static bool parse(int argc, char **argv, struct training_options *options, struct attn_error *error)
{
    /* GPT-2's smallest shape. */
    *options = (struct training_options){
        .model = {.kind = LANGUAGE_MODEL_GPT2,
                  .vocabulary = 50257,
                  .layers = 12,
                  .heads = 12,
                  .width = 768,
                  .context = 256},
        .batch = 4,
        .steps = 3,
    };
    struct shared_options *shared = &options->shared;
    if (!options_parse(argc, argv, option_table, take_option, options, shared, error))
        return false;
    if (!shared->help && shared->operand_count > 1)
        return attn_error_set(error, "'%s' is not expected", shared->operands[1]);
    if (options->model.width % options->model.heads)
        return attn_error_set(error, "--dim is %lld, but must be a multiple of --heads, %lld",
                              (long long)options->model.width, (long long)options->model.heads);
    return true;
}

/* Words at random, each telling the one behind it. */
struct training_text {
    int32_t *ids; /* [batch·context + 1] */
    int64_t *starts;
};

static bool make_text(struct training_text *text, const struct training_options *options,
                      struct attn_error *error)
{
    int64_t tokens = options->batch * options->model.context;
    text->ids = malloc((size_t)(tokens + 1) * sizeof *text->ids);
    text->starts = malloc((size_t)(options->batch + 1) * sizeof *text->starts);
    if (!text->ids || !text->starts)
        return attn_error_memory(error);
    uint32_t state = 1;
    for (int64_t t = 0; t <= tokens; t++) {
        state = state * 1664525u + 1013904223u; /* D. Knuth, volume 2, section 3.3.4 */
        text->ids[t] = (int32_t)((uint64_t)state * (uint64_t)options->model.vocabulary >> 32);
    }
    for (int64_t s = 0; s <= options->batch; s++)
        text->starts[s] = s * options->model.context;
    return true;
}

struct training {
    struct compute compute;
    struct language_model *model;
    struct optimizer optimizer;
    struct training_text text;
    struct language_model_times times;
    double optimizer_seconds;
};

static bool open_training(struct training *training, const struct training_options *options,
                          struct attn_error *error)
{
    static const struct optimizer_settings settings = {
        .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.01};
    return compute_create(&training->compute, options->shared.threads, error) &&
           language_model_create(&training->model, &options->model, 1, error) &&
           parameters_want_gradients(language_model_parameters(training->model), error) &&
           optimizer_create(&training->optimizer, language_model_parameters(training->model),
                            &settings, error) &&
           make_text(&training->text, options, error);
}

static void close_training(struct training *training)
{
    free(training->text.ids);
    free(training->text.starts);
    optimizer_destroy(&training->optimizer);
    language_model_close(training->model);
    compute_destroy(&training->compute);
}

static bool take_step(struct training *training, const struct training_options *options,
                      struct attn_error *error)
{
    int64_t tokens = options->batch * options->model.context;
    const struct language_batch batch = {.batch = {options->batch, training->text.starts},
                                         .ids = training->text.ids,
                                         .labels = training->text.ids + 1};
    const struct language_model_step step = {
        .gradient_scale = 1.0f / (float)tokens, .mode = GRADIENT_SET, .times = &training->times};
    struct cross_entropy sum = {0};
    double norm;
    struct parameters *parameters = language_model_parameters(training->model);
    if (!language_model_learn(training->model, &training->compute, &batch, &step, &sum, error))
        return false;
    double begin = timing_now();
    if (!gradient_norm(parameters, &training->compute, &norm, error))
        return false;
    optimizer_step(&training->optimizer, parameters, &training->compute, 1e-4,
                   gradient_clip_factor(norm, 1.0));
    training->optimizer_seconds += timing_now() - begin;
    return true;
}

/* Of a step: 6 for each weight of a matrix product and token, and attention's, forward and
 * backward, for each score that is kept. */
static double step_operations(const struct training_options *options)
{
    const struct language_model_settings *model = &options->model;
    double width = (double)model->width, context = (double)model->context;
    double weights = 12 * width * width * (double)model->layers + width * (double)model->vocabulary;
    double kept = context * (context + 1) / 2;
    return (double)options->batch *
           (6 * weights * context + (4 + 10) * width * kept * (double)model->layers);
}

static void add_result(struct attn_buffer *out, const struct training_options *options,
                       const struct training *training, double seconds, double peak)
{
    double steps = (double)options->steps;
    double rate = (double)(options->batch * options->model.context) * steps / seconds;
    double of_peak = step_operations(options) * steps / seconds * 1e-9 / peak;
    const struct language_model_times *times = &training->times;
    double rest = seconds - times->attention - times->linear - training->optimizer_seconds;
    const struct {
        const char *name;
        double value;
    } shares[] = {{"attention", times->attention / seconds},
                  {"linear", times->linear / seconds},
                  {"optimizer", training->optimizer_seconds / seconds},
                  {"rest", rest / seconds}};
    if (options->shared.json) {
        attn_buffer_format(out, "{\"tokens_per_second\": %.2f, \"of_peak\": %.4f", rate, of_peak);
        for (size_t n = 0; n < sizeof shares / sizeof shares[0]; n++)
            attn_buffer_format(out, ", \"%s\": %.4f", shares[n].name, shares[n].value);
        attn_buffer_add_text(out, ", \"peak_mib\": ");
        attn_buffer_add_json_float(out, (float)peak_memory_mib());
        attn_buffer_format(out, ", \"threads\": %d}\n",
                           attn_context_threads(training->compute.attention));
        return;
    }
    attn_buffer_format(out, "%.1f tokens/s, %.0f%% of the peak of %.1f GFLOP/s, %.0f MiB\n", rate,
                       100 * of_peak, peak, peak_memory_mib());
    for (size_t n = 0; n < sizeof shares / sizeof shares[0]; n++)
        attn_buffer_format(out, "%s%s %.1f%%", n > 0 ? ", " : "", shares[n].name,
                           100 * shares[n].value);
    attn_buffer_add_text(out, "\n");
}

static bool run(struct training *training, const struct training_options *options,
                struct attn_error *error)
{
    struct bench_machine machine = {0};
    struct attn_buffer out = {0};
    double peak = 0;
    /* One step that does not count: it touches all memory for the first time. */
    bool done = bench_machine_open(&machine, ATTN_ISA_BEST, options->shared.threads, error) &&
                open_training(training, options, error) && take_step(training, options, error);
    training->times = (struct language_model_times){0};
    training->optimizer_seconds = 0;
    double seconds = 0;
    for (int64_t step = 0; done && step < options->steps; step++) {
        double sample = fma_peak_sample(&machine.peak);
        peak = sample > peak ? sample : peak;
        double begin = timing_now();
        done = take_step(training, options, error);
        seconds += timing_now() - begin;
    }
    if (done) {
        add_result(&out, options, training, seconds, peak);
        done = output_write(&out, error);
    }
    attn_buffer_release(&out);
    bench_machine_close(&machine);
    return done;
}

enum status bench_training(int argc, char **argv, struct attn_error *error)
{
    struct training_options options;
    if (!parse(argc, argv, &options, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    struct training training = {0};
    bool done = run(&training, &options, error);
    close_training(&training);
    return done ? STATUS_SUCCESS : STATUS_FAILURE;
}
