#include "attn.h"

#include <math.h>

#include "base/float_mode.h"

void attn_alibi_slopes(int64_t heads, float *slopes)
{
    uint64_t modes = attn_float_mode_enter();
    int64_t power = 1;
    while (power <= heads / 2)
        power *= 2;
    for (int64_t h = 0; h < heads; h++) {
        /* Past the lower power n of two: slopes 1, 3, 5, … of the series for 2n heads. */
        double exponent = h < power ? -8.0 * (double)(h + 1) / (double)power
                                    : -8.0 * (double)(2 * (h - power) + 1) / (double)(2 * power);
        slopes[h] = (float)exp2(exponent);
    }
    attn_float_mode_leave(modes);
}
