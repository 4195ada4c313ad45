#include "heads_options.h"

#include <string.h>
#include <strings.h>

#include "heads_table.h"
#include "input.h"

enum {
    OPTION_CSV = OPTION_OWN,
    OPTION_LAYER,
    OPTION_SORT,
    OPTION_TRUNCATE,
    OPTION_REPEAT,
    OPTION_EVAL
};

/* Twice as many tokens still fit in 32 bits. */
enum { REPEAT_LIMIT = 1 << 24 };

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_FILE,
    OPTION_ENTRY_OUTPUT,
    OPTION_ENTRY_JSON,
    OPTION_ENTRY_HELP,
    {"csv", no_argument, NULL, OPTION_CSV},
    {"layer", required_argument, NULL, OPTION_LAYER},
    {"sort", required_argument, NULL, OPTION_SORT},
    {"truncate", no_argument, NULL, OPTION_TRUNCATE},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"seed", required_argument, NULL, 's'},
    {"eval", required_argument, NULL, OPTION_EVAL},
    OPTION_ENTRY_END,
};

static bool take_sort(struct heads_options *options, const char *value, struct attn_error *error)
{
    options->sort = value;
    options->smallest_first = value[0] == '-';
    return heads_column_find(value + options->smallest_first, &options->sort_column) ||
           attn_error_set(error,
                          "--sort is '%s', but must be entropy, distance, self, previous, next, "
                          "first, separators, sink, duplicate or induction",
                          value);
}

static bool take_seed(struct heads_options *options, const char *value, struct attn_error *error)
{
    int64_t seed;
    if (!options_integer("-s", value, 0, INT64_MAX, &seed, error))
        return false;
    options->seed = (uint64_t)seed;
    options->seed_is_given = true;
    return true;
}

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct heads_options *options = user;
    switch (option) {
    case OPTION_CSV:
        options->csv = true;
        break;
    case OPTION_LAYER:
        return options_integer("--layer", value, 0, INT32_MAX, &options->layer, error);
    case OPTION_SORT:
        return take_sort(options, value, error);
    case OPTION_TRUNCATE:
        options->truncate = true;
        break;
    case OPTION_REPEAT:
        return options_integer("--repeat", value, 1, REPEAT_LIMIT, &options->repeat, error);
    case 's':
        return take_seed(options, value, error);
    case OPTION_EVAL:
        if (!value[0])
            return attn_error_set(error, "--eval is empty, but must be a file's name");
        options->treebank = value;
        break;
    }
    return true;
}

/* One source of what the model reads, and no option that is of another. */
static bool choose_source(struct heads_options *options, struct attn_error *error)
{
    const bool texts = options->shared.file || options->shared.operand_count > 0;
    options->source = options->treebank ? HEADS_TREEBANK
                      : options->repeat ? HEADS_REPEAT
                                        : HEADS_TEXTS;
    if (options->treebank && options->repeat)
        return attn_error_set(error, "--eval and --repeat exclude each other");
    if (options->source != HEADS_TEXTS && texts)
        return attn_error_set(error, "%s and a text exclude each other",
                              options->treebank ? "--eval" : "--repeat");
    if (options->source != HEADS_TEXTS && options->truncate)
        return attn_error_set(error, "--truncate cuts texts; %s has none",
                              options->treebank ? "--eval" : "--repeat");
    if (options->treebank && options->sort)
        return attn_error_set(error, "--sort is for scores; the table of --eval is in the order of "
                                     "how frequent relations are");
    if (options->seed_is_given && !options->repeat)
        return attn_error_set(error, "-s is the seed of --repeat, which is not given");
    return options->source != HEADS_TEXTS || input_check(&options->shared, INPUT_ONE_TEXT, error);
}

static bool choose_form(struct heads_options *options, struct attn_error *error)
{
    static const struct {
        const char *suffix;
        enum heads_form form;
    } forms[] = {{".csv", HEADS_CSV}, {".json", HEADS_JSON}, {".txt", HEADS_TABLE}};
    if (options->csv && options->shared.json)
        return attn_error_set(error, "--csv and --json exclude each other");
    if (!options->shared.output)
        return true;
    const char *suffix = strrchr(options->shared.output, '.');
    for (size_t n = 0; suffix && n < sizeof forms / sizeof forms[0]; n++)
        if (strcasecmp(suffix, forms[n].suffix) == 0) {
            options->o_form = forms[n].form;
            return true;
        }
    return attn_error_set(error, "-o is '%s', but must end with .csv, .json or .txt",
                          options->shared.output);
}

bool heads_options_parse(int argc, char **argv, struct heads_options *options,
                         struct attn_error *error)
{
    *options = (struct heads_options){.layer = HEADS_ALL_LAYERS};
    if (!options_parse(argc, argv, option_table, take_option, options, &options->shared, error))
        return false;
    return options->shared.help || (choose_source(options, error) && choose_form(options, error));
}
