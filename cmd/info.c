/* attn info: the model, the CPU, and what the tool makes of both. */
#include <stdlib.h>

#include "base/cpu.h"
#include "base/parallel.h"
#include "format/checkpoint.h"
#include "model/causal_model.h"
#include "nn/blas_kernels.h"

#include "build_settings.h"
#include "options.h"
#include "output.h"
#include "session.h"
#include "verb.h"

static const struct option option_table[] = {OPTION_ENTRY_MODEL, OPTION_ENTRY_THREADS,
                                             OPTION_ENTRY_HELP, OPTION_ENTRY_END};

static bool describe_machine(int threads, struct attn_buffer *out, struct attn_error *error)
{
    struct compute compute = {0};
    if (!compute_create(&compute, threads, error))
        return false;
    char cpu[128];
    attn_cpu_name(cpu, sizeof cpu);
    attn_buffer_format(out, "version:      %s\n", attn_version());
    attn_buffer_format(out, "cpu:          %s\n", cpu[0] ? cpu : "unknown");
    attn_buffer_format(out, "isa:          %s\n",
                       attn_isa_name(attn_context_isa(compute.attention)));
    attn_buffer_format(out, "threads:      %d\n", attn_context_threads(compute.attention));
    attn_buffer_format(out, "runtime:      %s\n", attn_parallel_runtime());
    attn_buffer_format(out, "blas:         %s%s%s\n", build_cblas,
                       blas_kernels_name()[0] ? ", kernels of " : "", blas_kernels_name());
    compute_destroy(&compute);
    return true;
}

/* Integers in a checkpoint are buffers such as position_ids, not parameters. */
static bool is_parameter(const struct stored_tensor *tensor)
{
    switch (tensor->type) {
    case STORED_I64:
    case STORED_I32:
    case STORED_I16:
    case STORED_I8:
    case STORED_U64:
    case STORED_U32:
    case STORED_U16:
    case STORED_U8:
    case STORED_BOOL:
        return false;
    default:
        return true;
    }
}

/* What a model's file holds. */
struct weights_summary {
    int64_t parameters;
    int64_t bytes;
    int64_t type_bytes[STORED_TYPES]; /* by stored type */
};

static void add_tensor(struct weights_summary *summary, const struct stored_tensor *tensor)
{
    if (!is_parameter(tensor))
        return;
    summary->parameters += tensor->elements;
    summary->bytes += (int64_t)tensor->size;
    summary->type_bytes[tensor->type] += (int64_t)tensor->size;
}

static bool summarize(const struct session *session, struct weights_summary *summary,
                      struct attn_error *error)
{
    *summary = (struct weights_summary){0};
    const struct gguf *gguf = model_source_gguf(session->source);
    for (size_t i = 0; gguf && i < gguf_tensor_count(gguf); i++)
        add_tensor(summary, gguf_tensor_at(gguf, i));
    if (gguf)
        return true;
    struct checkpoint *checkpoint = NULL;
    if (!checkpoint_open(&checkpoint, session->path, error))
        return false;
    for (size_t i = 0; i < checkpoint_count(checkpoint); i++)
        add_tensor(summary, checkpoint_at(checkpoint, i));
    checkpoint_close(checkpoint);
    return true;
}

/* "Q4_1, Q8_0, F32, 93.8 MiB": the types by the bytes that they take. */
static void add_weights(const struct weights_summary *summary, struct attn_buffer *out)
{
    bool is_told[STORED_TYPES] = {false};
    attn_buffer_add_text(out, "weights:      ");
    for (;;) {
        int largest = -1;
        for (int type = 0; type < STORED_TYPES; type++)
            if (!is_told[type] && summary->type_bytes[type] > 0 &&
                (largest < 0 || summary->type_bytes[type] > summary->type_bytes[largest]))
                largest = type;
        if (largest < 0)
            break;
        is_told[largest] = true;
        attn_buffer_format(out, "%s, ", stored_type_name((enum stored_type)largest));
    }
    attn_buffer_format(out, "%.1f MiB\n", (double)summary->bytes / (1 << 20));
}

static const char *kind_name(enum model_kind kind)
{
    switch (kind) {
    case MODEL_BERT:
        return "BERT";
    case MODEL_GPT2:
        return "GPT-2";
    case MODEL_LLAMA:
        break;
    }
    return "Llama";
}

static bool describe_model(const struct session *session, struct attn_buffer *out,
                           struct attn_error *error)
{
    struct weights_summary summary;
    const struct text_model_settings *settings = &session->settings;
    struct causal_settings causal = {.key_heads = settings->heads};
    if (!summarize(session, &summary, error) ||
        (settings->kind != MODEL_BERT &&
         !causal_model_read_settings(&causal, session->source, error)))
        return false;
    const bool is_file = model_source_gguf(session->source) != NULL;
    attn_buffer_format(out, "model:        %s\n", session->name);
    attn_buffer_format(out, "%s %s\n", is_file ? "file:        " : "directory:   ",
                       model_source_path(session->source));
    attn_buffer_format(out, "architecture: %s\n", kind_name(settings->kind));
    attn_buffer_format(out, "layers:       %lld\n", (long long)settings->layers);
    attn_buffer_format(out, "heads:        %lld\n", (long long)settings->heads);
    if (causal.key_heads != settings->heads)
        attn_buffer_format(out, "key heads:    %lld\n", (long long)causal.key_heads);
    attn_buffer_format(out, "hidden:       %lld\n", (long long)settings->width);
    attn_buffer_format(out, "positions:    %lld\n", (long long)settings->positions);
    attn_buffer_format(out, "vocabulary:   %lld\n", (long long)settings->vocabulary);
    attn_buffer_format(out, "parameters:   %lld\n", (long long)summary.parameters);
    add_weights(&summary, out);
    return true;
}

/* The model that writes where none is named. */
static void describe_generator(struct attn_buffer *out)
{
    struct attn_error fault;
    char *path = NULL, *name = NULL;
    if (model_locate(MODEL_FOR_WRITING, NULL, &path, &name, &fault))
        attn_buffer_format(out, "generator:    %s, %s\n", name, path);
    else
        attn_buffer_format(out, "generator:    none; fetch the default one with %s\n",
                           MODEL_FETCH_GENERATOR_COMMAND);
    free(path);
    free(name);
}

/* Without a request for a certain model, a machine that has none yet is no failure. */
static bool describe(const struct shared_options *options, struct session *session,
                     struct attn_buffer *out, struct attn_error *error)
{
    if (!describe_machine(options->threads, out, error))
        return false;
    const char *variable = getenv("ATTN_MODEL");
    if (session_locate(session, options->model, error)) {
        if (!session_open_settings(session, error) || !describe_model(session, out, error))
            return false;
    } else if (options->model || (variable && variable[0])) {
        return false;
    } else {
        attn_buffer_format(out, "model:        none; fetch the default one with %s\n",
                           MODEL_FETCH_COMMAND);
    }
    if (!options->model)
        describe_generator(out);
    return true;
}

enum status verb_info(int argc, char **argv, struct attn_error *error)
{
    struct shared_options options;
    if (!options_parse(argc, argv, option_table, NULL, NULL, &options, error))
        return STATUS_USAGE;
    if (options.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    if (options.operand_count > 0) {
        attn_error_set(error, "'%s' is not expected; a model is given with -m",
                       options.operands[0]);
        return STATUS_USAGE;
    }

    struct session session = {0};
    struct attn_buffer out = {0};
    bool done = describe(&options, &session, &out, error) && output_write(&out, error);
    attn_buffer_release(&out);
    session_close(&session);
    return done ? STATUS_SUCCESS : STATUS_FAILURE;
}
