#include "bench_generate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/isa_name.h"
#include "bench_run.h"
#include "measure/timing.h"
#include "model/causal_model.h"
#include "options.h"
#include "output.h"
#include "peak_memory.h"
#include "session.h"

enum { OPTION_ISA = OPTION_OWN, OPTION_PRECISION, OPTION_CACHE_TYPE, OPTION_DEPTH };

enum { TOKENS_LIMIT = 1 << 24, RUNS_LIMIT = 100 };

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_JSON,
    OPTION_ENTRY_HELP,
    {"n-prompt", required_argument, NULL, 'p'},
    {"n-gen", required_argument, NULL, 'n'},
    {"depth", required_argument, NULL, OPTION_DEPTH},
    {"repetitions", required_argument, NULL, 'r'},
    {"isa", required_argument, NULL, OPTION_ISA},
    {"precision", required_argument, NULL, OPTION_PRECISION},
    {"cache-type", required_argument, NULL, OPTION_CACHE_TYPE},
    OPTION_ENTRY_END,
};

struct generate_bench_options {
    struct shared_options shared;
    int64_t prompt, write; /* tokens; 0: that is not timed */
    int64_t depth;         /* tokens that stand before them */
    int64_t runs;
    attn_isa isa; /* ATTN_ISA_BEST where it is not given */
    attn_precision precision;
    enum cache_type cache;
};

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct generate_bench_options *options = user;
    switch (option) {
    case 'p':
        return options_integer("-p", value, 0, TOKENS_LIMIT, &options->prompt, error);
    case 'n':
        return options_integer("-n", value, 0, TOKENS_LIMIT, &options->write, error);
    case OPTION_DEPTH:
        return options_integer("--depth", value, 0, TOKENS_LIMIT, &options->depth, error);
    case 'r':
        return options_integer("-r", value, 1, RUNS_LIMIT, &options->runs, error);
    case OPTION_ISA:
        return attn_isa_from_name(value, &options->isa) ||
               attn_error_set(error, "--isa is '%s', but must be " ATTN_ISA_NAMES, value);
    case OPTION_PRECISION:
        return options_precision(value, &options->precision, error);
    case OPTION_CACHE_TYPE:
        return cache_type_from_name(value, &options->cache) ||
               attn_error_set(error, "--cache-type is '%s', but must be f32, f16, bf16 or int8",
                              value);
    }
    return true;
}

static bool parse(int argc, char **argv, struct generate_bench_options *options,
                  struct attn_error *error)
{
    *options = (struct generate_bench_options){
        .prompt = 512, .write = 64, .runs = 5, .isa = ATTN_ISA_BEST, .cache = CACHE_F16};
    struct shared_options *shared = &options->shared;
    if (!options_parse(argc, argv, option_table, take_option, options, shared, error))
        return false;
    if (!shared->help && shared->operand_count > 1)
        return attn_error_set(error, "'%s' is not expected", shared->operands[1]);
    if (options->prompt == 0 && options->write == 0)
        return attn_error_set(error, "-p and -n are both 0: there is nothing to time");
    return true;
}

/* All that a run holds. */
struct generate_bench {
    const struct generate_bench_options *options;
    struct bench_machine machine;
    struct session session;
    struct causal_model *model;
    struct causal_session *text;
    int32_t *ids;  /* [depth + prompt, or more]: words at random */
    float *logits; /* [vocabulary] */
    double peak_mib;
};

/* Medians of runs, and of what the machine gave beside them. */
struct generate_bench_result {
    double seconds;
    double machine; /* GFLOP/s or GB/s */
};

static int64_t longest(const struct generate_bench_options *options)
{
    const int64_t more = options->prompt > options->write ? options->prompt : options->write;
    return options->depth + more;
}

static bool make_text(struct generate_bench *bench, int64_t vocabulary, struct attn_error *error)
{
    const int64_t count = longest(bench->options);
    bench->ids = malloc((size_t)count * sizeof *bench->ids);
    bench->logits = malloc((size_t)vocabulary * sizeof *bench->logits);
    if (!bench->ids || !bench->logits)
        return attn_error_memory(error);
    uint32_t state = 1;
    for (int64_t t = 0; t < count; t++) {
        state = state * 1664525u + 1013904223u; /* D. Knuth, volume 2, section 3.3.4 */
        bench->ids[t] = (int32_t)((uint64_t)state * (uint64_t)vocabulary >> 32);
    }
    return true;
}

static bool open_model(struct generate_bench *bench, struct attn_error *error)
{
    const struct generate_bench_options *options = bench->options;
    struct session *session = &bench->session;
    struct causal_settings model;
    if (!session_locate_generator(session, options->shared.model, error) ||
        !causal_model_read_settings(&model, session->source, error))
        return false;
    if (longest(options) > model.context)
        return attn_error_set(error, "%lld tokens are asked for, the model has %lld positions",
                              (long long)longest(options), (long long)model.context);
    const struct causal_session_settings settings = {.sequences = 1,
                                                     .capacity = longest(options),
                                                     .cache = options->cache,
                                                     .precision = options->precision};
    return compute_create_for(&session->compute, bench->machine.isa, options->shared.threads,
                              error) &&
           make_text(bench, model.vocabulary, error) &&
           causal_model_open(&bench->model, session->source, error) &&
           causal_session_create(&bench->text, bench->model, &session->compute, &settings, error);
}

/* Reads ids[first..first+count−1], at once or token by token; logits of the last of each call. */
static bool read_tokens(struct generate_bench *bench, int64_t first, int64_t count, int64_t at_once,
                        struct attn_error *error)
{
    for (int64_t t = 0; t < count; t += at_once) {
        const int64_t starts[] = {0, at_once};
        const struct causal_input input = {
            .sequences = 1, .starts = starts, .ids = bench->ids + first + t, .want = CAUSAL_LAST};
        if (!causal_session_read(bench->text, &input, NULL, bench->logits, error))
            return false;
    }
    return true;
}

/* Each begins behind `depth` tokens. */
static bool time_prefill(struct generate_bench *bench, double *seconds, struct attn_error *error)
{
    const struct generate_bench_options *options = bench->options;
    causal_session_truncate(bench->text, 0, options->depth);
    const double begin = timing_now();
    const bool done = options->prompt == 0 ||
                      read_tokens(bench, options->depth, options->prompt, options->prompt, error);
    *seconds = timing_now() - begin;
    return done;
}

static bool time_decode(struct generate_bench *bench, double *seconds, struct attn_error *error)
{
    const struct generate_bench_options *options = bench->options;
    causal_session_truncate(bench->text, 0, options->depth);
    const double begin = timing_now();
    const bool done = read_tokens(bench, options->depth, options->write, 1, error);
    *seconds = timing_now() - begin;
    return done;
}

/* Two for each weight of a matrix product and token, of the head's for the one token whose logits
 * are wanted, and attention's 4·d for each score that is kept. */
static double prefill_operations(const struct causal_settings *model,
                                 const struct generate_bench_options *options)
{
    const double tokens = (double)options->prompt, depth = (double)options->depth;
    const double head = (double)model->vocabulary * (double)model->width;
    const double scores = tokens * depth + tokens * (tokens + 1) / 2;
    const double width = (double)(model->layers * model->heads * model->head_size);
    return 2 * ((double)model->parameters - head) * tokens + 2 * head + 4 * width * scores;
}

/* All weights for each token, and the keys and values up to its own. */
static double decode_bytes(const struct causal_settings *model,
                           const struct generate_bench_options *options)
{
    enum { SAMPLE = 1024 };
    const struct key_value_settings cache = {.type = options->cache,
                                             .layers = model->layers,
                                             .sequences = 1,
                                             .heads = model->key_heads,
                                             .d = model->head_size,
                                             .capacity = SAMPLE};
    const double tokens = (double)options->write, depth = (double)options->depth;
    int64_t bytes = 0;
    key_value_cache_bytes(&cache, &bytes);
    return (double)model->weight_bytes * tokens +
           (double)bytes / SAMPLE * (tokens * depth + tokens * (tokens + 1) / 2);
}

/* What stands before, and a run that does not count: it touches all memory for the first time. What
 * measures the read bandwidth has memory of its own, which is not that of writing: as many bytes as
 * a token needs, so that caches help the measure as they help the model. */
static bool warm_up(struct generate_bench *bench, struct attn_error *error)
{
    const int64_t depth = bench->options->depth;
    double seconds;
    if ((depth > 0 && !read_tokens(bench, 0, depth, depth, error)) ||
        !time_prefill(bench, &seconds, error) || !time_decode(bench, &seconds, error))
        return false;
    bench->peak_mib = peak_memory_mib();
    if (bench->options->write == 0)
        return true;
    const double bytes = decode_bytes(causal_model_get_settings(bench->model), bench->options);
    return bench_machine_open_bandwidth_of(&bench->machine,
                                           (int64_t)(bytes / (double)bench->options->write), error);
}

static void show_progress(int64_t run, int64_t runs)
{
    if (progress_is_shown())
        fprintf(stderr, "\rattn bench: run %lld of %lld\x1b[K", (long long)run + 1,
                (long long)runs);
}

/* Runs and measures of the machine take turns, so that both see the same state of it. */
static bool measure(struct generate_bench *bench, struct generate_bench_result *prefill,
                    struct generate_bench_result *decode, struct attn_error *error)
{
    double prefill_times[RUNS_LIMIT], decode_times[RUNS_LIMIT];
    double peaks[RUNS_LIMIT], bandwidths[RUNS_LIMIT];
    const size_t runs = (size_t)bench->options->runs;
    bool done = true;
    for (size_t run = 0; done && run < runs; run++) {
        show_progress((int64_t)run, bench->options->runs);
        peaks[run] = fma_peak_sample(&bench->machine.peak);
        done = time_prefill(bench, &prefill_times[run], error);
        if (!done || bench->options->write == 0)
            continue;
        bandwidths[run] = read_bandwidth_sample(&bench->machine.bandwidth);
        done = time_decode(bench, &decode_times[run], error);
    }
    progress_end();
    if (!done)
        return false;
    *prefill = (struct generate_bench_result){timing_median(prefill_times, runs),
                                              timing_median(peaks, runs)};
    if (bench->options->write > 0)
        *decode = (struct generate_bench_result){timing_median(decode_times, runs),
                                                 timing_median(bandwidths, runs)};
    return true;
}

static void add_number(struct attn_buffer *out, const char *key, double value)
{
    attn_buffer_format(out, ", \"%s\": ", key);
    attn_buffer_add_json_float(out, (float)value);
}

static const char *kind_name(enum model_kind kind)
{
    return kind == MODEL_GPT2 ? "gpt2" : "llama";
}

static const char *precision_name(attn_precision precision)
{
    return precision == ATTN_PRECISION_BF16 ? "bf16" : "exact";
}

/* A part of the result: how many tokens, how fast, and what of the machine that takes. */
struct rate {
    const char *name, *unit, *measure; /* "GFLOP/s" of the "peak" */
    const char *key, *share_key;       /* in JSON */
    int64_t tokens;
    double work; /* operations or bytes */
    struct generate_bench_result result;
};

static void add_json_rate(const struct rate *rate, struct attn_buffer *out)
{
    attn_buffer_format(out, ", \"%s\": ", rate->name);
    if (rate->tokens == 0) {
        attn_buffer_add_text(out, "null");
        return;
    }
    const double work = rate->work / rate->result.seconds * 1e-9;
    attn_buffer_format(out, "{\"tokens\": %lld", (long long)rate->tokens);
    add_number(out, "tokens_per_second", (double)rate->tokens / rate->result.seconds);
    add_number(out, rate->key, work);
    add_number(out, rate->share_key, work / rate->result.machine);
    attn_buffer_add_text(out, "}");
}

static void add_line(const struct rate *rate, int64_t depth, struct attn_buffer *out)
{
    if (rate->tokens == 0)
        return;
    const double work = rate->work / rate->result.seconds * 1e-9;
    attn_buffer_format(out, "%s:%*s%lld tokens", rate->name, 11 - (int)strlen(rate->name), "",
                       (long long)rate->tokens);
    if (depth > 0)
        attn_buffer_format(out, " behind %lld", (long long)depth);
    attn_buffer_format(out, ": %.1f tokens/s, %.1f %s, %.0f%% of the %s of %.1f %s\n",
                       (double)rate->tokens / rate->result.seconds, work, rate->unit,
                       100 * work / rate->result.machine, rate->measure, rate->result.machine,
                       rate->unit);
}

static void add_result(const struct generate_bench *bench, const struct rate rates[2],
                       struct attn_buffer *out)
{
    const struct generate_bench_options *options = bench->options;
    const struct causal_settings *model = causal_model_get_settings(bench->model);
    const char *name = bench->session.name, *isa = attn_isa_name(bench->machine.isa);
    const int threads = attn_context_threads(bench->session.compute.attention);
    if (options->shared.json) {
        attn_buffer_add_text(out, "{\"model\": ");
        attn_buffer_add_json_string(out, name, strlen(name));
        attn_buffer_format(out,
                           ", \"kind\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"precision\": "
                           "\"%s\", \"cache\": \"%s\", \"depth\": %lld",
                           kind_name(model->kind), isa, threads, precision_name(options->precision),
                           cache_type_name(options->cache), (long long)options->depth);
        add_json_rate(&rates[0], out);
        add_json_rate(&rates[1], out);
        add_number(out, "peak_mib", bench->peak_mib);
        attn_buffer_add_text(out, "}\n");
        return;
    }
    attn_buffer_format(out, "model:      %s (%s), %.1f million weights in %.1f MiB\n", name,
                       kind_name(model->kind), (double)model->parameters * 1e-6,
                       (double)model->weight_bytes / (1 << 20));
    attn_buffer_format(out, "isa:        %s, precision %s, cache %s\n", isa,
                       precision_name(options->precision), cache_type_name(options->cache));
    attn_buffer_format(out, "threads:    %d\n", threads);
    add_line(&rates[0], options->depth, out);
    add_line(&rates[1], options->depth, out);
    attn_buffer_format(out, "memory:     %.0f MiB\n", bench->peak_mib);
}

static bool run(struct generate_bench *bench, struct attn_error *error)
{
    const struct generate_bench_options *options = bench->options;
    struct generate_bench_result prefill = {NAN, NAN}, decode = {NAN, NAN};
    if (!bench_machine_open(&bench->machine, options->isa, options->shared.threads, error) ||
        !open_model(bench, error) || !warm_up(bench, error) ||
        !measure(bench, &prefill, &decode, error))
        return false;
    const struct causal_settings *model = causal_model_get_settings(bench->model);
    const struct rate rates[] = {
        {"prefill", "GFLOP/s", "peak", "gflops", "of_peak", options->prompt,
         prefill_operations(model, options), prefill},
        {"decode", "GB/s", "read bandwidth", "gbps", "of_bandwidth", options->write,
         decode_bytes(model, options), decode},
    };
    struct attn_buffer out = {0};
    add_result(bench, rates, &out);
    const bool done = output_write(&out, error);
    attn_buffer_release(&out);
    return done;
}

enum status bench_generate(int argc, char **argv, struct attn_error *error)
{
    struct generate_bench_options options;
    if (!parse(argc, argv, &options, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    struct generate_bench bench = {.options = &options};
    const bool done = run(&bench, error);
    causal_session_destroy(bench.text);
    causal_model_close(bench.model);
    session_close(&bench.session);
    bench_machine_close(&bench.machine);
    free(bench.ids);
    free(bench.logits);
    return done ? STATUS_SUCCESS : STATUS_FAILURE;
}
