#include "bench_options.h"

#include <string.h>

#include "attention/isa_name.h"

enum { OPTION_FILTER = OPTION_OWN, OPTION_ISA, OPTION_PRECISION, OPTION_EXPLAIN };

static const struct option option_table[] = {
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_JSON,
    OPTION_ENTRY_HELP,
    {"filter", required_argument, NULL, OPTION_FILTER},
    {"isa", required_argument, NULL, OPTION_ISA},
    {"precision", required_argument, NULL, OPTION_PRECISION},
    {"explain", no_argument, NULL, OPTION_EXPLAIN},
    OPTION_ENTRY_END,
};

static bool name_holds(const struct bench_case *shape, const char *text)
{
    char name[BENCH_NAME_SIZE];
    bench_case_name(shape, name);
    return strstr(name, text) != NULL;
}

static bool add_filter(struct bench_options *options, const char *text, struct attn_error *error)
{
    if (!text[0])
        return attn_error_set(error, "--filter is empty, but must be a part of a case's name");
    if (options->filter_count == BENCH_FILTERS)
        return attn_error_set(error, "--filter is given more than %d times", BENCH_FILTERS);
    for (size_t i = 0; i < bench_case_count; i++) {
        if (name_holds(&bench_cases[i], text)) {
            options->filters[options->filter_count++] = text;
            return true;
        }
    }
    return attn_error_set(error,
                          "no case's name holds --filter '%s'; 'attn bench attention --explain' "
                          "lists them",
                          text);
}

static bool read_isa(struct bench_options *options, const char *text, struct attn_error *error)
{
    return attn_isa_from_name(text, &options->isa) ||
           attn_error_set(error, "--isa is '%s', but must be " ATTN_ISA_NAMES, text);
}

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct bench_options *options = user;
    switch (option) {
    case OPTION_FILTER:
        return add_filter(options, value, error);
    case OPTION_ISA:
        return read_isa(options, value, error);
    case OPTION_PRECISION:
        return options_precision(value, &options->precision, error);
    case OPTION_EXPLAIN:
        options->explain = true;
        break;
    }
    return true;
}

bool bench_options_parse(int argc, char **argv, struct bench_options *options,
                         struct attn_error *error)
{
    *options = (struct bench_options){.isa = ATTN_ISA_BEST};
    struct shared_options *shared = &options->shared;
    if (!options_parse(argc, argv, option_table, take_option, options, shared, error))
        return false;
    if (shared->help)
        return true;
    if (shared->operand_count == 0)
        return attn_error_set(error, "what to measure is missing: attention, training or generate");
    if (strcmp(shared->operands[0], "attention") != 0)
        return attn_error_set(
            error, "there is nothing called '%s' to measure, but attention, training and generate",
            shared->operands[0]);
    if (shared->operand_count > 1)
        return attn_error_set(error, "'%s' is not expected; cases are chosen with --filter",
                              shared->operands[1]);
    if (shared->json && options->explain)
        return attn_error_set(error, "--json and --explain exclude each other: --explain prints "
                                     "text");
    return true;
}

bool bench_options_want(const struct bench_options *options, const struct bench_case *shape)
{
    for (int i = 0; i < options->filter_count; i++)
        if (name_holds(shape, options->filters[i]))
            return true;
    return options->filter_count == 0;
}
