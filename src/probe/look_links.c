#include <math.h>
#include <string.h>

#include "probe/look_pass.h"

/* Larger first; what is not a number goes before all, so that it is seen. */
static bool is_stronger(float a, float b)
{
    return a > b || (isnan(a) && !isnan(b));
}

void look_find_links(const float *row, size_t columns, size_t count, struct look_link *links)
{
    size_t found = 0;
    for (size_t column = 0; column < columns; column++) {
        const float weight = row[column];
        if (weight == 0.0f || (found == count && !is_stronger(weight, links[found - 1].weight)))
            continue;
        size_t place = found < count ? found++ : count - 1;
        for (; place > 0 && is_stronger(weight, links[place - 1].weight); place--)
            links[place] = links[place - 1];
        links[place] = (struct look_link){(uint32_t)column, weight};
    }
    memset(links + found, 0, (count - found) * sizeof *links);
}
