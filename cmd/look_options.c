#include "look_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "look_measures.h"
#include "look_what_if.h"

enum { TOP_DEFAULT = 5 };

enum {
    OPTION_PAIR = OPTION_OWN,
    OPTION_FROM,
    OPTION_LAYER,
    OPTION_HEAD,
    OPTION_PIECES,
    OPTION_SPECIAL,
    OPTION_SELF,
    OPTION_RENORMALIZE,
    OPTION_TOP,
    OPTION_MEASURE,
    OPTION_GENERATE,
    OPTION_ABLATE,
    OPTION_CUT
};

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_FILE,
    OPTION_ENTRY_OUTPUT,
    OPTION_ENTRY_JSON,
    OPTION_ENTRY_HELP,
    {"pair", required_argument, NULL, OPTION_PAIR},
    {"from", required_argument, NULL, OPTION_FROM},
    {"layer", required_argument, NULL, OPTION_LAYER},
    {"head", required_argument, NULL, OPTION_HEAD},
    {"pieces", no_argument, NULL, OPTION_PIECES},
    {"special", no_argument, NULL, OPTION_SPECIAL},
    {"self", no_argument, NULL, OPTION_SELF},
    {"renormalize", no_argument, NULL, OPTION_RENORMALIZE},
    {"top", required_argument, NULL, OPTION_TOP},
    {"measure", required_argument, NULL, OPTION_MEASURE},
    {"generate", required_argument, NULL, OPTION_GENERATE},
    {"ablate", required_argument, NULL, OPTION_ABLATE},
    {"cut", required_argument, NULL, OPTION_CUT},
    OPTION_ENTRY_END,
};

static bool add_head(struct look_head **heads, size_t *count, struct look_head head,
                     struct attn_error *error)
{
    struct look_head *grown = realloc(*heads, (*count + 1) * sizeof **heads);
    if (!grown)
        return attn_error_memory(error);
    *heads = grown;
    grown[(*count)++] = head;
    return true;
}

/* The number behind one letter of "L4H7"; NULL for anything else, or the character behind it. */
static const char *read_part(const char *text, char letter, int64_t *number)
{
    enum { PART_LIMIT = 1000000 };
    if (toupper((unsigned char)*text) != letter || !isdigit((unsigned char)text[1]))
        return NULL;
    *number = 0;
    for (text++; isdigit((unsigned char)*text); text++) {
        *number = *number * 10 + (*text - '0');
        if (*number > PART_LIMIT)
            return NULL;
    }
    return text;
}

/* "L4H7", or with `layers` "L4" too. */
static bool read_head(const char *value, bool layers, struct look_head *head)
{
    const char *rest = read_part(value, 'L', &head->layer);
    head->head = LOOK_MEAN;
    if (rest && !(layers && !*rest))
        rest = read_part(rest, 'H', &head->head);
    return rest && !*rest;
}

static bool take_head(struct look_options *options, const char *value, struct attn_error *error)
{
    struct look_head head;
    if (!read_head(value, false, &head))
        return attn_error_set(
            error, "--head is '%s', but must name a layer and a head, both from 0, as L4H7", value);
    return add_head(&options->heads, &options->head_count, head, error);
}

static bool take_layer(struct look_options *options, const char *value, struct attn_error *error)
{
    struct look_head layer = {.head = LOOK_MEAN};
    return options_integer("--layer", value, 0, INT32_MAX, &layer.layer, error) &&
           add_head(&options->heads, &options->head_count, layer, error);
}

static bool take_ablated(struct look_options *options, const char *value, struct attn_error *error)
{
    struct look_head head;
    if (!read_head(value, true, &head))
        return attn_error_set(
            error, "--ablate is '%s', but must name a head or a layer, from 0, as L4H7 or L4",
            value);
    return add_head(&options->ablated, &options->ablated_count, head, error);
}

static bool take_cut(struct look_options *options, const char *value, struct attn_error *error)
{
    /* A colon may be a word too: which one separates is seen when the text is known. */
    const char *colon = value[0] ? strchr(value + 1, ':') : NULL;
    if (!colon || !colon[1])
        return attn_error_set(error,
                              "--cut is '%s', but must name a word and one that it shall not see, "
                              "with a colon between them, as it:robot",
                              value);
    if (!input_check_utf8("--cut", value, strlen(value), error))
        return false;
    const char **grown = realloc(options->cuts, (options->cut_count + 1) * sizeof *options->cuts);
    if (!grown)
        return attn_error_memory(error);
    options->cuts = grown;
    grown[options->cut_count++] = value;
    return true;
}

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct look_options *options = user;
    int64_t top = 0;
    switch (option) {
    case OPTION_PAIR:
        options->pair = value;
        break;
    case OPTION_FROM:
        if (!value[0])
            return attn_error_set(error, "--from is empty, but must be a word of the text");
        options->from = value;
        return input_check_utf8("--from", value, strlen(value), error);
    case OPTION_LAYER:
        return take_layer(options, value, error);
    case OPTION_HEAD:
        return take_head(options, value, error);
    case OPTION_PIECES:
        options->unit = LOOK_PIECES;
        break;
    case OPTION_SPECIAL:
        options->special = true;
        break;
    case OPTION_SELF:
        options->self = true;
        break;
    case OPTION_RENORMALIZE:
        options->renormalize = true;
        break;
    case OPTION_TOP:
        if (!options_integer("--top", value, 1, INT32_MAX, &top, error))
            return false;
        options->top = (size_t)top;
        break;
    case OPTION_MEASURE:
        return look_measure_find(value, &options->measure, error);
    case OPTION_GENERATE:
        return options_integer("--generate", value, 1, INT32_MAX, &options->generate, error);
    case OPTION_ABLATE:
        return take_ablated(options, value, error);
    case OPTION_CUT:
        return take_cut(options, value, error);
    }
    return true;
}

/* Layers and heads stand in one list, in the order given; both kinds at once are refused. */
static bool check_heads(struct look_options *options, struct attn_error *error)
{
    options->heads_are_named = options->head_count > 0;
    if (!options->heads_are_named)
        return add_head(&options->heads, &options->head_count,
                        (struct look_head){LOOK_MEAN, LOOK_MEAN}, error);
    bool mean = options->heads[0].head == LOOK_MEAN;
    for (size_t i = 1; i < options->head_count; i++)
        if ((options->heads[i].head == LOOK_MEAN) != mean)
            return attn_error_set(error, "--layer and --head exclude each other");
    if (!mean && options->measure == LOOK_ROLLOUT)
        return attn_error_set(error, "--head and --measure rollout exclude each other: a rollout "
                                     "is of layers (--layer N)");
    return true;
}

/* Without -o, --ablate and --cut print what changes, in which options of rankings say nothing. */
static bool check_change(const struct look_options *options, struct attn_error *error)
{
    if (!look_what_if_is_asked(options))
        return true;
    const char *change = options->ablated_count > 0 ? "--ablate" : "--cut";
    if (options->measure == LOOK_GRADIENT)
        return attn_error_set(error, "%s and --measure grad exclude each other", change);
    const struct {
        bool given;
        const char *name;
    } others[] = {{options->from, "--from"},
                  {options->self, "--self"},
                  {options->renormalize, "--renormalize"},
                  {options->measure != LOOK_WEIGHTS, "--measure"}};
    for (size_t n = 0; !options->draw && n < sizeof others / sizeof others[0]; n++)
        if (others[n].given)
            return attn_error_set(error,
                                  "%s and %s exclude each other, but with -o, which draws the "
                                  "changed model's attention",
                                  change, others[n].name);
    return true;
}

bool look_options_parse(int argc, char **argv, struct look_options *options,
                        struct attn_error *error)
{
    *options = (struct look_options){.unit = LOOK_WORDS, .top = TOP_DEFAULT};
    if (!options_parse(argc, argv, option_table, take_option, options, &options->shared, error))
        return false;
    if (options->shared.help)
        return true;
    if (!input_check(&options->shared, INPUT_ONE_TEXT, error) || !check_heads(options, error) ||
        (options->shared.output &&
         !map_form_choose("-o", options->shared.output, &options->draw, error)))
        return false;
    /* A page has all of its rows, and hides the added tokens until they are asked for. */
    if (options->draw == draw_html && !options->renormalize && !options->shared.json)
        options->special = true;
    return check_change(options, error) &&
           (!options->generate || !options->pair ||
            attn_error_set(error, "--generate and --pair exclude each other"));
}

void look_options_release(struct look_options *options)
{
    free(options->heads);
    free(options->ablated);
    free(options->cuts);
    options->heads = options->ablated = NULL;
    options->cuts = NULL;
}
