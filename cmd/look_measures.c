#include "look_measures.h"

#include <string.h>

static const char *const names[] = {
    [LOOK_WEIGHTS] = "weights",
    [LOOK_NORM] = "norm",
    [LOOK_ROLLOUT] = "rollout",
    [LOOK_GRADIENT] = "grad",
};

bool look_measure_find(const char *name, enum look_measure *measure, struct attn_error *error)
{
    for (int n = LOOK_WEIGHTS; n <= LOOK_GRADIENT; n++)
        if (strcmp(name, names[n]) == 0) {
            *measure = (enum look_measure)n;
            return true;
        }
    return attn_error_set(error, "the measure is '%s', but must be weights, norm, rollout or grad",
                          name);
}

const char *look_measure_name(enum look_measure measure)
{
    return names[measure];
}
