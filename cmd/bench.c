/* attn bench: what libattn reaches on this machine, beside what the machine gives. */
#include <stdio.h>
#include <string.h>

#include "bench_generate.h"
#include "bench_options.h"
#include "bench_print.h"
#include "bench_run.h"
#include "bench_training.h"
#include "options.h"
#include "output.h"
#include "verb.h"

static void show_progress(const char *name, size_t done, size_t total)
{
    if (progress_is_shown())
        fprintf(stderr, "\rattn bench: %s (%zu of %zu)\x1b[K", name, done + 1, total);
}

static size_t count_wanted(const struct bench_options *options, bool decodes_only)
{
    size_t wanted = 0;
    for (size_t i = 0; i < bench_case_count; i++)
        wanted += bench_options_want(options, &bench_cases[i]) &&
                  (!decodes_only || bench_cases[i].operation == ATTN_OPERATION_DECODE);
    return wanted;
}

/* Appends what is asked of a case. */
static bool add_case(const struct bench_options *options, const struct bench_machine *machine,
                     const struct bench_case *shape, const char *name, struct attn_buffer *out,
                     struct attn_error *error)
{
    if (options->explain) {
        attn_explanation explanation;
        if (!bench_explain(machine, shape, options->precision, &explanation, error))
            return false;
        attn_buffer_format(out, "%s: %s\n", name, explanation.text);
        return true;
    }
    struct bench_result result;
    if (!bench_run(machine, shape, options->precision, &result, error))
        return false;
    if (options->shared.json)
        bench_add_json(out, name, &result);
    else
        bench_add_row(out, name, &result);
    return true;
}

/* Each line is written when it is known. */
static bool run_cases(const struct bench_options *options, const struct bench_machine *machine,
                      struct attn_buffer *out, struct attn_error *error)
{
    size_t total = count_wanted(options, false), done = 0;
    for (size_t i = 0; i < bench_case_count; i++) {
        if (!bench_options_want(options, &bench_cases[i]))
            continue;
        char name[BENCH_NAME_SIZE];
        bench_case_name(&bench_cases[i], name);
        show_progress(name, done++, total);
        bool added = add_case(options, machine, &bench_cases[i], name, out, error);
        progress_end();
        if (!added || !output_write(out, error))
            return false;
        attn_buffer_clear(out);
    }
    return true;
}

static bool bench(const struct bench_options *options, struct bench_machine *machine,
                  struct attn_buffer *out, struct attn_error *error)
{
    bool prints_table = !options->shared.json && !options->explain;
    if (!bench_machine_open(machine, options->isa, options->shared.threads, error))
        return false;
    if ((prints_table || (!options->explain && count_wanted(options, true) > 0)) &&
        !bench_machine_open_bandwidth(machine, error))
        return false;
    if (prints_table) {
        bench_add_heading(out, machine, options->precision);
        if (!output_write(out, error))
            return false;
        attn_buffer_clear(out);
    }
    return run_cases(options, machine, out, error);
}

enum status verb_bench(int argc, char **argv, struct attn_error *error)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "training") == 0)
            return bench_training(argc, argv, error);
        if (strcmp(argv[i], "generate") == 0)
            return bench_generate(argc, argv, error);
    }

    struct bench_options options;
    if (!bench_options_parse(argc, argv, &options, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;

    struct bench_machine machine = {0};
    struct attn_buffer out = {0};
    bool done = bench(&options, &machine, &out, error);
    attn_buffer_release(&out);
    bench_machine_close(&machine);
    return done ? STATUS_SUCCESS : STATUS_FAILURE;
}
