/* attn help: the overview, or the manual of a verb. */
#include "manual.h"
#include "options.h"
#include "output.h"
#include "verb.h"

static const struct option option_table[] = {OPTION_ENTRY_HELP, OPTION_ENTRY_END};

enum status verb_help(int argc, char **argv, struct attn_error *error)
{
    struct shared_options options;
    if (!options_parse(argc, argv, option_table, NULL, NULL, &options, error))
        return STATUS_USAGE;
    if (options.operand_count > 1) {
        attn_error_set(error, "one verb is expected, %d are given", options.operand_count);
        return STATUS_USAGE;
    }

    const char *text = options.help ? manual_help : manual_overview;
    if (options.operand_count == 1) {
        const struct verb *verb = verb_find(options.operands[0], error);
        if (!verb)
            return STATUS_USAGE;
        text = verb->manual;
    }
    return output_write_text(text, error) ? STATUS_SUCCESS : STATUS_FAILURE;
}
