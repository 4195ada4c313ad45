#include "verb.h"

#include <stdio.h>
#include <string.h>

#include "manual.h"

static const struct verb verbs[] = {
    {"look", manual_look, verb_look},
    {"heads", manual_heads, verb_heads},
    {"serve", manual_serve, verb_serve},
    {"embed", manual_embed, verb_embed},
    {"tokenize", manual_tokenize, verb_tokenize},
    {"generate", manual_generate, verb_generate},
    {"fill", manual_fill, verb_fill},
    {"train", manual_train, verb_train},
    {"info", manual_info, verb_info},
    {"bench", manual_bench, verb_bench},
    {"help", manual_help, verb_help},
};
static const size_t verb_count = sizeof verbs / sizeof verbs[0];

const struct verb *verb_find(const char *name, struct attn_error *error)
{
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < verb_count; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
        int written =
            snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", verbs[i].name);
        if (written > 0 && (size_t)written < sizeof names - used)
            used += (size_t)written;
    }
    attn_error_set(error, "there is no verb '%s'; the verbs are %s", name, names);
    return NULL;
}
