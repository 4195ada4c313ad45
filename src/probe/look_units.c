#include "probe/look_pass.h"

#include <stdlib.h>

static void form(const struct encoding *encoding, enum look_unit unit, bool special,
                 struct look *look, int32_t *group)
{
    for (size_t t = 0; t < encoding->token_count; t++) {
        int32_t word = encoding->tokens[t].word;
        bool added = word == TOKEN_NO_WORD;
        if (added && !special) {
            group[t] = LOOK_LEFT_OUT;
            continue;
        }
        bool continues =
            unit == LOOK_WORDS && !added && t > 0 && encoding->tokens[t - 1].word == word;
        if (!continues) {
            look->first_token[look->units] = t;
            look->word[look->units] = word;
            look->units++;
        }
        look->token_counts[look->units - 1]++;
        group[t] = (int32_t)look->units - 1;
    }
}

bool look_form_units(const struct encoding *encoding, enum look_unit unit, bool special,
                     struct look *look, int32_t **group, struct attn_error *error)
{
    const size_t most = encoding->token_count + 1;
    *look = (struct look){
        .first_token = calloc(most, sizeof *look->first_token),
        .token_counts = calloc(most, sizeof *look->token_counts),
        .word = calloc(most, sizeof *look->word),
    };
    *group = calloc(most, sizeof **group);
    if (look->first_token && look->token_counts && look->word && *group) {
        form(encoding, unit, special, look, *group);
        return true;
    }
    look_release(look);
    free(*group);
    *group = NULL;
    return attn_error_memory(error);
}

bool look_name_units(const struct encoding *encoding, enum look_unit unit, bool special,
                     struct look *look, struct attn_error *error)
{
    int32_t *group;
    const bool made = look_form_units(encoding, unit, special, look, &group, error);
    free(group);
    return made;
}
