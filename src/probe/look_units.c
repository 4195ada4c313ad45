#include "probe/look_pass.h"

#include <stdlib.h>

void look_form_units(const struct encoding *encoding, enum look_unit unit, bool special,
                     int32_t *group, struct look *look)
{
    look->units = 0;
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
        group[t] = (int32_t)look->units - 1;
    }
}

bool look_name_units(const struct encoding *encoding, enum look_unit unit, bool special,
                     struct look *look, struct attn_error *error)
{
    *look = (struct look){0};
    int32_t *group = calloc(encoding->token_count + 1, sizeof *group);
    look->first_token = calloc(encoding->token_count + 1, sizeof *look->first_token);
    look->word = calloc(encoding->token_count + 1, sizeof *look->word);
    const bool made = group && look->first_token && look->word;
    if (made)
        look_form_units(encoding, unit, special, group, look);
    else
        look_release(look);
    free(group);
    return made || attn_error_memory(error);
}
