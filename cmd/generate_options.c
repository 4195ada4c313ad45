#include "generate_options.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/splitmix.h"
#include "input.h"

enum {
    OPTION_PROMPTS = OPTION_OWN,
    OPTION_LOOK,
    OPTION_SYSTEM,
    OPTION_CHAT,
    OPTION_STOP,
    OPTION_TEMPERATURE,
    OPTION_TOP_K,
    OPTION_TOP_P,
    OPTION_MIN_P,
    OPTION_REPEAT_PENALTY,
    OPTION_REPEAT_LAST,
    OPTION_CACHE_TYPE,
    OPTION_PRECISION
};

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_FILE,
    OPTION_ENTRY_JSON,
    OPTION_ENTRY_HELP,
    {"prompt", required_argument, NULL, 'p'},
    {"prompts", required_argument, NULL, OPTION_PROMPTS},
    {"interactive", no_argument, NULL, 'i'},
    {"chat", no_argument, NULL, OPTION_CHAT},
    {"system", required_argument, NULL, OPTION_SYSTEM},
    {"n-predict", required_argument, NULL, 'n'},
    {"ctx-size", required_argument, NULL, 'c'},
    {"stop", required_argument, NULL, OPTION_STOP},
    {"seed", required_argument, NULL, 's'},
    {"temp", required_argument, NULL, OPTION_TEMPERATURE},
    {"top-k", required_argument, NULL, OPTION_TOP_K},
    {"top-p", required_argument, NULL, OPTION_TOP_P},
    {"min-p", required_argument, NULL, OPTION_MIN_P},
    {"repeat-penalty", required_argument, NULL, OPTION_REPEAT_PENALTY},
    {"repeat-last-n", required_argument, NULL, OPTION_REPEAT_LAST},
    {"look", required_argument, NULL, OPTION_LOOK},
    {"cache-type", required_argument, NULL, OPTION_CACHE_TYPE},
    {"precision", required_argument, NULL, OPTION_PRECISION},
    OPTION_ENTRY_END,
};

/* A whole number from `minimum` on, or -1: llama.cpp's way to say "no limit", "all", "draw one". */
static bool take_open_number(const char *name, const char *value, int64_t minimum, int64_t maximum,
                             int64_t *number, struct attn_error *error)
{
    *number = -1;
    if (strcmp(value, "-1") == 0)
        return true;
    struct attn_error fault;
    if (options_integer(name, value, minimum, maximum, number, &fault))
        return true;
    return attn_error_set(error, "%s, or -1", fault.message);
}

static bool take_text(const char *name, const char *value, const char **text,
                      struct attn_error *error)
{
    *text = value;
    return input_check_utf8(name, value, strlen(value), error);
}

static bool take_file(const char *name, const char *value, const char **file,
                      struct attn_error *error)
{
    *file = value;
    return value[0] || attn_error_set(error, "%s is empty, but must be a file's name", name);
}

static bool take_stop(struct generate_options *options, const char *value, struct attn_error *error)
{
    if (!value[0])
        return attn_error_set(error, "--stop is empty, but must be a text");
    if (options->stop_count == GENERATE_STOPS)
        return attn_error_set(error, "--stop is given more than %d times", GENERATE_STOPS);
    return take_text("--stop", value, &options->stops[options->stop_count++], error);
}

static bool take_penalty(struct sampler_settings *sampler, const char *value,
                         struct attn_error *error)
{
    if (!options_number("--repeat-penalty", value, 0, INFINITY, &sampler->repeat_penalty, error))
        return false;
    return sampler->repeat_penalty > 0 ||
           attn_error_set(error,
                          "--repeat-penalty is '%s', but must be more than 0; 1 changes "
                          "nothing",
                          value);
}

static bool take_sampling(struct sampler_settings *sampler, int option, const char *value,
                          struct attn_error *error)
{
    switch (option) {
    case OPTION_TEMPERATURE:
        return options_number("--temp", value, 0, INFINITY, &sampler->temperature, error);
    case OPTION_TOP_K:
        return options_integer("--top-k", value, 0, INT32_MAX, &sampler->top_k, error);
    case OPTION_TOP_P:
        return options_number("--top-p", value, 0, 1, &sampler->top_p, error);
    case OPTION_MIN_P:
        return options_number("--min-p", value, 0, 1, &sampler->min_p, error);
    case OPTION_REPEAT_PENALTY:
        return take_penalty(sampler, value, error);
    default:
        return take_open_number("--repeat-last-n", value, 0, INT32_MAX, &sampler->repeat_last,
                                error);
    }
}

static bool take_seed(struct generate_options *options, const char *value, struct attn_error *error)
{
    int64_t seed;
    if (!take_open_number("-s", value, 0, INT64_MAX, &seed, error))
        return false;
    options->seed_is_given = seed >= 0;
    options->sampler.seed = (uint64_t)seed;
    return true;
}

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct generate_options *options = user;
    switch (option) {
    case 'p':
        options->prompt = value;
        return true;
    case 'i':
        options->interactive = true;
        return true;
    case 'n':
        return take_open_number("-n", value, 1, INT32_MAX, &options->limit, error);
    case 'c':
        return options_integer("-c", value, 0, INT32_MAX, &options->context, error);
    case 's':
        return take_seed(options, value, error);
    case OPTION_PROMPTS:
        return take_file("--prompts", value, &options->prompts, error);
    case OPTION_LOOK:
        return take_file("--look", value, &options->look, error) &&
               map_form_choose("--look", value, &options->draw, error);
    case OPTION_CHAT:
        options->chat = true;
        return true;
    case OPTION_SYSTEM:
        return take_text("--system", value, &options->system, error);
    case OPTION_STOP:
        return take_stop(options, value, error);
    case OPTION_CACHE_TYPE:
        return cache_type_from_name(value, &options->cache) ||
               attn_error_set(error, "--cache-type is '%s', but must be f32, f16, bf16 or int8",
                              value);
    case OPTION_PRECISION:
        return options_precision(value, &options->precision, error);
    default:
        return take_sampling(&options->sampler, option, value, error);
    }
}

bool generate_options_have_text(const struct generate_options *options)
{
    return options->shared.file || options->shared.operand_count > 0;
}

/* -p TEXT is the operand TEXT. */
static bool take_prompt(struct generate_options *options, struct attn_error *error)
{
    if (!options->prompt)
        return true;
    if (options->shared.file)
        return attn_error_set(error, "-p and -f exclude each other");
    if (options->shared.operand_count > 0)
        return attn_error_set(error, "-p and the text '%s' exclude each other",
                              options->shared.operands[0]);
    options->shared.operands = (char **)&options->prompt;
    options->shared.operand_count = 1;
    return true;
}

static bool check_prompts(const struct generate_options *options, struct attn_error *error)
{
    if (generate_options_have_text(options))
        return attn_error_set(error, "--prompts and another prompt exclude each other");
    if (options->look)
        return attn_error_set(error, "--prompts and --look exclude each other: a picture is of one "
                                     "text");
    return true;
}

/* A conversation reads standard input, and its answers are for eyes. */
static bool check_interactive(const struct generate_options *options, struct attn_error *error)
{
    const char *other = options->prompts       ? "--prompts"
                        : options->shared.json ? "--json"
                        : options->look        ? "--look"
                                               : NULL;
    if (other)
        return attn_error_set(error, "-i and %s exclude each other", other);
    const char *file = options->shared.file;
    if (file ? strcmp(file, "-") == 0
             : options->shared.operand_count == 1 && strcmp(options->shared.operands[0], "-") == 0)
        return attn_error_set(error, "-i reads what you say from standard input; '-' cannot stand "
                                     "beside it");
    return true;
}

static bool check(struct generate_options *options, struct attn_error *error)
{
    if (!take_prompt(options, error))
        return false;
    if (options->system && !options->chat && !options->interactive)
        return attn_error_set(error, "--system needs --chat or -i: only a conversation has a "
                                     "system text");
    if (options->interactive && !check_interactive(options, error))
        return false;
    if (options->prompts)
        return check_prompts(options, error);
    return (options->interactive && !generate_options_have_text(options)) ||
           input_check(&options->shared, INPUT_ONE_TEXT, error);
}

/* 32 bits, which are easy to type again. */
static uint64_t draw_seed(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t moment = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    return attn_splitmix(moment ^ (uint64_t)getpid() << 40) >> 32;
}

bool generate_options_parse(int argc, char **argv, struct generate_options *options,
                            struct attn_error *error)
{
    *options = (struct generate_options){.limit = -1, .cache = CACHE_F16};
    sampler_settings_init(&options->sampler);
    if (!options_parse(argc, argv, option_table, take_option, options, &options->shared, error))
        return false;
    if (options->shared.help)
        return true;
    if (!options->seed_is_given)
        options->sampler.seed = draw_seed();
    options->chat |= options->interactive;
    return check(options, error);
}
