#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "output.h"
#include "verb.h"

enum {
    THREADS_LIMIT = 1024,
    LETTERS_SIZE = 64 /* ":" and three characters an option with a letter */
};

bool options_integer(const char *name, const char *text, int64_t minimum, int64_t maximum,
                     int64_t *value, struct attn_error *error)
{
    char *end = NULL;
    errno = 0;
    long long number = isdigit((unsigned char)text[0]) ? strtoll(text, &end, 10) : 0;
    if (!end || *end || errno || number < minimum || number > maximum) {
        if (maximum == INT64_MAX)
            return attn_error_set(error, "%s is '%s', but must be a whole number from %lld on",
                                  name, text, (long long)minimum);
        return attn_error_set(error, "%s is '%s', but must be a whole number from %lld to %lld",
                              name, text, (long long)minimum, (long long)maximum);
    }
    *value = number;
    return true;
}

bool options_number(const char *name, const char *text, double minimum, double maximum,
                    double *value, struct attn_error *error)
{
    char *end = NULL;
    /* strtod alone would take blanks, hexadecimal digits, "inf" and "nan" too. */
    bool is_plain = text[0] && text[strspn(text, "0123456789.eE+-")] == '\0';
    double number = is_plain ? strtod(text, &end) : 0;
    if (end && end != text && !*end && isfinite(number) && number >= minimum && number <= maximum) {
        *value = number;
        return true;
    }
    if (isinf(maximum))
        return attn_error_set(error, "%s is '%s', but must be a number from %g on", name, text,
                              minimum);
    return attn_error_set(error, "%s is '%s', but must be a number from %g to %g", name, text,
                          minimum, maximum);
}

bool options_precision(const char *text, attn_precision *precision, struct attn_error *error)
{
    if (strcmp(text, "exact") == 0)
        *precision = ATTN_PRECISION_EXACT;
    else if (strcmp(text, "bf16") == 0)
        *precision = ATTN_PRECISION_BF16;
    else
        return attn_error_set(error, "--precision is '%s', but must be exact or bf16", text);
    return true;
}

static const struct option *find_by_value(const struct option *table, int value)
{
    for (const struct option *entry = table; entry->name; entry++)
        if (entry->val == value)
            return entry;
    return NULL;
}

/* getopt's list of letters, from the table. A leading ':' tells a missing value from an unknown
 * option. */
static void list_letters(const struct option *table, char letters[LETTERS_SIZE])
{
    size_t used = 0;
    letters[used++] = ':';
    for (const struct option *entry = table; entry->name; entry++) {
        if (entry->val >= OPTION_JSON || used + 3 > LETTERS_SIZE)
            continue;
        letters[used++] = (char)entry->val;
        if (entry->has_arg == required_argument)
            letters[used++] = ':';
    }
    letters[used] = '\0';
}

/* A long option that getopt did not take: it begins several names, or none. */
static bool refuse_long(const struct option *table, const char *verb, const char *argument,
                        struct attn_error *error)
{
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const char *first = NULL;
    for (const struct option *entry = table; entry->name; entry++) {
        if (strncmp(entry->name, name, length) != 0)
            continue;
        if (first)
            return attn_error_set(error, "option '--%.*s' could be --%s or --%s", (int)length, name,
                                  first, entry->name);
        first = entry->name;
    }
    return attn_error_set(error, "there is no option '--%.*s'; see 'attn help %s'", (int)length,
                          name, verb);
}

/* getopt answered '?'. */
static bool refuse_unknown(const struct option *table, char **argv, struct attn_error *error)
{
    if (optopt == 0)
        return refuse_long(table, argv[0], argv[optind - 1], error);
    const struct option *known = find_by_value(table, optopt);
    if (known)
        return attn_error_set(error, "option '--%s' takes no value", known->name);
    if (!isgraph(optopt))
        return attn_error_set(error,
                              "there is no option of that letter; a text that begins with '-' "
                              "must stand behind '--'");
    return attn_error_set(
        error,
        "there is no option '-%c'; see 'attn help %s' (a text that begins with '-' "
        "must stand behind '--')",
        optopt, argv[0]);
}

static bool resolve_threads(const char *text, struct shared_options *shared,
                            struct attn_error *error)
{
    const char *variable = getenv("ATTN_THREADS");
    int64_t threads = 0;
    if (text) {
        if (!options_integer("-t", text, 1, THREADS_LIMIT, &threads, error))
            return false;
    } else if (variable && variable[0]) {
        if (!options_integer("ATTN_THREADS", variable, 1, THREADS_LIMIT, &threads, error))
            return false;
    } else {
        threads = attn_available_cpus();
    }
    shared->threads = (int)threads;
    return true;
}

bool options_parse(int argc, char **argv, const struct option *table, options_take *take,
                   void *user, struct shared_options *shared, struct attn_error *error)
{
    *shared = (struct shared_options){0};
    char letters[LETTERS_SIZE];
    list_letters(table, letters);
    const char *threads = NULL;

    opterr = 0;
    for (;;) {
        int option = getopt_long(argc, argv, letters, table, NULL);
        if (option == -1)
            break;
        switch (option) {
        case '?':
            return refuse_unknown(table, argv, error);
        case ':':
            return attn_error_set(error, "option '%s' needs a value; see 'attn help %s'",
                                  argv[optind - 1], argv[0]);
        case 'm':
            if (!optarg[0])
                return attn_error_set(error, "-m is empty, but must be a model's name or folder");
            shared->model = optarg;
            break;
        case 't':
            threads = optarg;
            break;
        case 'f':
            if (!optarg[0])
                return attn_error_set(error, "-f is empty, but must be a file's name");
            shared->file = optarg;
            break;
        case 'o':
            if (!optarg[0])
                return attn_error_set(error, "-o is empty, but must be a file's name");
            shared->output = optarg;
            break;
        case 'h':
            shared->help = true;
            break;
        case OPTION_JSON:
            shared->json = true;
            break;
        default:
            if (!take(user, option, optarg, error))
                return false;
        }
    }
    shared->operands = argv + optind;
    shared->operand_count = argc - optind;

    if (shared->help || !find_by_value(table, 't'))
        return true;
    return resolve_threads(threads, shared, error);
}

bool options_print_help(const char *verb, struct attn_error *error)
{
    const struct verb *found = verb_find(verb, error);
    return found && output_write_text(found->manual, error);
}
