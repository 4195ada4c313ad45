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

size_t look_page_links(size_t head_count, size_t units)
{
    const double whole_limit = 256e6; /* bytes */
    enum { LINKS = 32 };
    const double whole = (double)head_count * (double)units * (double)units * sizeof(float);
    return whole <= whole_limit ? 0 : LINKS;
}
