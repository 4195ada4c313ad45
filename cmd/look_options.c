#include "look_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"

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
    OPTION_TOP
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
    OPTION_ENTRY_END,
};

static bool add_head(struct look_options *options, struct look_head head, struct attn_error *error)
{
    struct look_head *grown =
        realloc(options->heads, (options->head_count + 1) * sizeof *options->heads);
    if (!grown)
        return attn_error_memory(error);
    options->heads = grown;
    options->heads[options->head_count++] = head;
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

static bool take_head(struct look_options *options, const char *value, struct attn_error *error)
{
    struct look_head head;
    const char *rest = read_part(value, 'L', &head.layer);
    rest = rest ? read_part(rest, 'H', &head.head) : NULL;
    if (!rest || *rest)
        return attn_error_set(
            error, "--head is '%s', but must name a layer and a head, both from 0, as L4H7", value);
    return add_head(options, head, error);
}

static bool take_layer(struct look_options *options, const char *value, struct attn_error *error)
{
    struct look_head layer = {.head = LOOK_MEAN};
    return options_integer("--layer", value, 0, INT32_MAX, &layer.layer, error) &&
           add_head(options, layer, error);
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
    }
    return true;
}

/* Layers and heads stand in one list, in the order given; both kinds at once are refused. */
static bool check_heads(struct look_options *options, struct attn_error *error)
{
    if (options->head_count == 0)
        return add_head(options, (struct look_head){LOOK_MEAN, LOOK_MEAN}, error);
    bool mean = options->heads[0].head == LOOK_MEAN;
    for (size_t i = 1; i < options->head_count; i++)
        if ((options->heads[i].head == LOOK_MEAN) != mean)
            return attn_error_set(error, "--layer and --head exclude each other");
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
    return input_check(&options->shared, INPUT_ONE_TEXT, error) && check_heads(options, error) &&
           (!options->shared.output ||
            map_form_choose("-o", options->shared.output, &options->draw, error));
}

void look_options_release(struct look_options *options)
{
    free(options->heads);
    options->heads = NULL;
}
