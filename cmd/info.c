/* attn info: the model, the CPU, and what the tool makes of both. */
#include <stdlib.h>

#include "base/cpu.h"
#include "base/parallel.h"
#include "format/checkpoint.h"
#include "model/locate.h"

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
    attn_buffer_format(out, "blas:         %s\n", build_cblas);
    compute_destroy(&compute);
    return true;
}

/* Integers in a checkpoint are buffers such as position_ids, not parameters. */
static bool is_parameter(const struct stored_tensor *tensor)
{
    switch (tensor->type) {
    case STORED_F64:
    case STORED_F32:
    case STORED_F16:
    case STORED_BF16:
    case STORED_F8_E4M3:
    case STORED_F8_E5M2:
        return true;
    default:
        return false;
    }
}

static bool count_parameters(const char *directory, int64_t *parameters, struct attn_error *error)
{
    struct checkpoint *checkpoint = NULL;
    if (!checkpoint_open(&checkpoint, directory, error))
        return false;
    *parameters = 0;
    for (size_t i = 0; i < checkpoint_count(checkpoint); i++) {
        const struct stored_tensor *tensor = checkpoint_at(checkpoint, i);
        if (is_parameter(tensor))
            *parameters += tensor->elements;
    }
    checkpoint_close(checkpoint);
    return true;
}

static bool describe_model(const struct session *session, struct attn_buffer *out,
                           struct attn_error *error)
{
    int64_t parameters = 0;
    if (!count_parameters(session->directory, &parameters, error))
        return false;
    const struct text_model_settings *settings = &session->settings;
    attn_buffer_format(out, "model:        %s\n", session->name);
    attn_buffer_format(out, "directory:    %s\n", session->directory);
    attn_buffer_format(out, "architecture: %s\n",
                       settings->kind == LANGUAGE_MODEL_GPT2 ? "GPT-2" : "BERT");
    attn_buffer_format(out, "layers:       %lld\n", (long long)settings->layers);
    attn_buffer_format(out, "heads:        %lld\n", (long long)settings->heads);
    attn_buffer_format(out, "hidden:       %lld\n", (long long)settings->width);
    attn_buffer_format(out, "positions:    %lld\n", (long long)settings->positions);
    attn_buffer_format(out, "vocabulary:   %lld\n", (long long)settings->vocabulary);
    attn_buffer_format(out, "parameters:   %lld\n", (long long)parameters);
    return true;
}

/* Without a request for a certain model, a machine that has none yet is no failure. */
static bool describe(const struct shared_options *options, struct session *session,
                     struct attn_buffer *out, struct attn_error *error)
{
    if (!describe_machine(options->threads, out, error))
        return false;
    if (session_locate(session, options->model, error))
        return session_open_settings(session, error) && describe_model(session, out, error);

    const char *variable = getenv("ATTN_MODEL");
    if (options->model || (variable && variable[0]))
        return false;
    attn_buffer_format(out, "model:        none; fetch the default one with %s\n",
                       MODEL_FETCH_COMMAND);
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
