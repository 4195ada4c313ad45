/* The command line of a verb: getopt_long, the options that several verbs share, and how a wrong
 * one is told. All errors here are STATUS_USAGE. */
#ifndef ATTN_CMD_OPTIONS_H
#define ATTN_CMD_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Values of options without a letter. */
enum {
    OPTION_JSON = 256,
    OPTION_OWN /* a verb numbers its own from here */
};

/* Entries of a verb's table: it takes those shared options that it lists. (The formatter would
 * spread each over four lines.) */
/* clang-format off */
#define OPTION_ENTRY_MODEL   {"model", required_argument, NULL, 'm'}
#define OPTION_ENTRY_THREADS {"threads", required_argument, NULL, 't'}
#define OPTION_ENTRY_FILE    {"file", required_argument, NULL, 'f'}
#define OPTION_ENTRY_OUTPUT  {"output", required_argument, NULL, 'o'}
#define OPTION_ENTRY_JSON    {"json", no_argument, NULL, OPTION_JSON}
#define OPTION_ENTRY_HELP    {"help", no_argument, NULL, 'h'}
#define OPTION_ENTRY_END     {NULL, 0, NULL, 0}
/* clang-format on */

struct shared_options {
    const char *model;  /* -m, or NULL */
    const char *file;   /* -f, or NULL */
    const char *output; /* -o, or NULL */
    int threads;        /* see options_parse */
    bool json;
    bool help;       /* -h: the verb prints its manual and does nothing else */
    char **operands; /* what is not an option */
    int operand_count;
};

/* Takes one of the verb's own options; value is NULL for one that has none. */
typedef bool options_take(void *user, int option, const char *value, struct attn_error *error);

/* Reads argv, whose first entry is the verb's name. Options may stand before and behind operands;
 * "--" ends them. An option with a letter as its value in `table` has that letter too. `take` may
 * be NULL for a verb without own options. Where the table has -t, threads is its value, else that
 * of ATTN_THREADS, else the CPUs that the process may use. */
bool options_parse(int argc, char **argv, const struct option *table, options_take *take,
                   void *user, struct shared_options *shared, struct attn_error *error);

/* A whole decimal number in minimum..maximum; `name` is the option as the message shall call it. */
bool options_integer(const char *name, const char *text, int64_t minimum, int64_t maximum,
                     int64_t *value, struct attn_error *error);

/* A finite decimal number in minimum..maximum; a maximum of INFINITY is none. */
bool options_number(const char *name, const char *text, double minimum, double maximum,
                    double *value, struct attn_error *error);

/* "exact" or "bf16", the values of --precision. */
bool options_precision(const char *text, attn_precision *precision, struct attn_error *error);

/* The manual of a verb on standard output. */
bool options_print_help(const char *verb, struct attn_error *error);

#endif
