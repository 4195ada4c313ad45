#include "harness/random.h"

uint64_t random_bits(struct random_source *source)
{
    uint64_t z = source->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t random_integer(struct random_source *source, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)(high - low) + 1;
    return low + (int64_t)(random_bits(source) % span);
}

float random_float(struct random_source *source, float low, float high)
{
    double unit = (double)(random_bits(source) >> 11) / 9007199254740991.0; /* 2^53 − 1 */
    return (float)(low + ((double)high - low) * unit);
}

void random_floats(struct random_source *source, float low, float high, float *floats, size_t count)
{
    for (size_t i = 0; i < count; i++)
        floats[i] = random_float(source, low, high);
}
