#include "format/stored_blocks.h"

#include "format/stored_number.h"

enum { SMALL = 32, LARGE = 256, HALF = SMALL / 2 };

void stored_block_q8_0(const unsigned char *block, float *floats)
{
    float scale = stored_half(block);
    for (int i = 0; i < SMALL; i++)
        floats[i] = scale * (float)(signed char)block[2 + i];
}

/* Weights 0 to 15 are the low halves of 16 bytes, 16 to 31 the high ones; bit i of `fifth` is the
 * fifth bit of weight i. */
static int small_quant(const unsigned char *quants, uint32_t fifth, int i)
{
    int low = i < HALF ? quants[i] & 15 : quants[i - HALF] >> 4;
    return low | (int)(fifth >> i & 1) << 4;
}

void stored_block_q4_0(const unsigned char *block, float *floats)
{
    float scale = stored_half(block);
    for (int i = 0; i < SMALL; i++)
        floats[i] = scale * (float)(small_quant(block + 2, 0, i) - 8);
}

void stored_block_q4_1(const unsigned char *block, float *floats)
{
    float scale = stored_half(block);
    float minimum = stored_half(block + 2);
    for (int i = 0; i < SMALL; i++)
        floats[i] = scale * (float)small_quant(block + 4, 0, i) + minimum;
}

void stored_block_q5_0(const unsigned char *block, float *floats)
{
    float scale = stored_half(block);
    uint32_t fifth = stored_u32(block + 2);
    for (int i = 0; i < SMALL; i++)
        floats[i] = scale * (float)(small_quant(block + 6, fifth, i) - 16);
}

void stored_block_q5_1(const unsigned char *block, float *floats)
{
    float scale = stored_half(block);
    float minimum = stored_half(block + 2);
    uint32_t fifth = stored_u32(block + 4);
    for (int i = 0; i < SMALL; i++)
        floats[i] = scale * (float)small_quant(block + 8, fifth, i) + minimum;
}

/* Scale and minimum of one of the eight groups of 32, six bits each in twelve bytes: groups 0 to 3
 * in the lower bits of bytes 0 to 7; of groups 4 to 7 the low four bits in bytes 8 to 11, and the
 * high two on top of bytes 0 to 7. */
static void group_scale(const unsigned char *scales, int group, int *scale, int *minimum)
{
    if (group < 4) {
        *scale = scales[group] & 63;
        *minimum = scales[group + 4] & 63;
    } else {
        *scale = (scales[group + 4] & 15) | scales[group - 4] >> 6 << 4;
        *minimum = scales[group + 4] >> 4 | scales[group] >> 6 << 4;
    }
}

/* Groups 2n and 2n + 1 are the low and high halves of the same 32 bytes. `fifth` is NULL, or has
 * the fifth bits: bit g of byte i for weight i of group g. */
static void large_groups(const unsigned char *block, const unsigned char *fifth,
                         const unsigned char *quants, float *floats)
{
    float block_scale = stored_half(block);
    float block_minimum = stored_half(block + 2);
    for (int group = 0; group < LARGE / SMALL; group++) {
        int scale;
        int minimum;
        group_scale(block + 4, group, &scale, &minimum);
        const unsigned char *bytes = quants + group / 2 * SMALL;
        for (int i = 0; i < SMALL; i++) {
            int quant = group % 2 ? bytes[i] >> 4 : bytes[i] & 15;
            if (fifth)
                quant |= (fifth[i] >> group & 1) << 4;
            floats[group * SMALL + i] =
                block_scale * (float)scale * (float)quant - block_minimum * (float)minimum;
        }
    }
}

void stored_block_q4_k(const unsigned char *block, float *floats)
{
    large_groups(block, NULL, block + 16, floats);
}

void stored_block_q5_k(const unsigned char *block, float *floats)
{
    large_groups(block, block + 16, block + 48, floats);
}

/* Two halves of 128 weights, each four groups of 32: the low four bits of groups 0 and 1 in the low
 * halves of 64 bytes, of 2 and 3 in their high halves; the high two of all in 32 bytes; a scale for
 * each 16 weights. */
void stored_block_q6_k(const unsigned char *block, float *floats)
{
    enum { HIGH = 128, SCALES = 192, BLOCK_SCALE = 208 };
    float block_scale = stored_half(block + BLOCK_SCALE);
    for (int i = 0; i < LARGE; i++) {
        int half = i / 128;
        int group = i % 128 / SMALL;
        unsigned char low = block[half * 64 + i % 64];
        unsigned char high = block[HIGH + half * SMALL + i % SMALL];
        int quant = (group < 2 ? low & 15 : low >> 4) | (high >> 2 * group & 3) << 4;
        int scale = (signed char)block[SCALES + i / 16];
        floats[i] = block_scale * (float)scale * (float)(quant - 32);
    }
}
