#include "halves.h"

#include "kernel/storage_scalar.h"

uint16_t rounded_half(float x)
{
    uint16_t half;
    attn_narrow_scalar(ATTN_STORAGE_BF16, &x, 1, &half);
    return half;
}

double half_value(uint16_t half)
{
    float x;
    attn_widen_scalar(ATTN_STORAGE_BF16, &half, 1.0f, 1, &x);
    return (double)x;
}

uint16_t *random_halves(struct random_source *source, int64_t count, enum guard_side side)
{
    uint16_t *halves = guarded_bytes((size_t)count * sizeof *halves, sizeof *halves, side);
    for (int64_t i = 0; i < count; i++)
        halves[i] = rounded_half(random_float(source, -2, 2));
    return halves;
}
