#include "nn/rope.h"

#include <math.h>

/* theta^(−2i/d), rounded where PyTorch rounds: the exponent, the power, and what 1 is divided by
 * it. */
static float frequency(const struct rope *rope, int64_t i)
{
    float exponent = (float)(2 * i) / (float)rope->d;
    float power = (float)pow((double)rope->theta, (double)exponent);
    return 1.0f / power;
}

void rope_table(const struct rope *rope, int64_t first, int64_t tokens, float *cosines,
                float *sines)
{
    const int64_t pairs = rope->d / 2;
    for (int64_t i = 0; i < pairs; i++) {
        const float turn = frequency(rope, i);
        for (int64_t t = 0; t < tokens; t++) {
            const float angle = (float)(first + t) * turn;
            cosines[t * pairs + i] = (float)cos((double)angle);
            sines[t * pairs + i] = (float)sin((double)angle);
        }
    }
}

/* `direction` is 1 for the table's angles, −1 for the opposite ones. */
static void turn_halves(int64_t pairs, const float *restrict cosines, const float *restrict sines,
                        float direction, float *restrict x)
{
    float *restrict y = x + pairs;
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[i], b = y[i], sine = direction * sines[i];
        x[i] = a * cosines[i] - b * sine;
        y[i] = b * cosines[i] + a * sine;
    }
}

static void turn_neighbours(int64_t pairs, const float *restrict cosines,
                            const float *restrict sines, float direction, float *restrict x)
{
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1], sine = direction * sines[i];
        x[2 * i] = a * cosines[i] - b * sine;
        x[2 * i + 1] = b * cosines[i] + a * sine;
    }
}

static void turn(const struct rope *rope, const float *cosines, const float *sines, float direction,
                 int64_t tokens, int64_t heads, int64_t stride, float *x)
{
    const int64_t pairs = rope->d / 2;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t h = 0; h < heads; h++) {
            float *head = x + t * stride + h * rope->d;
            if (rope->pairs == ROPE_HALVES)
                turn_halves(pairs, cosines + t * pairs, sines + t * pairs, direction, head);
            else
                turn_neighbours(pairs, cosines + t * pairs, sines + t * pairs, direction, head);
        }
}

void rope_turn(const struct rope *rope, const float *cosines, const float *sines, int64_t tokens,
               int64_t heads, int64_t stride, float *x)
{
    turn(rope, cosines, sines, 1.0f, tokens, heads, stride, x);
}

void rope_turn_back(const struct rope *rope, const float *cosines, const float *sines,
                    int64_t tokens, int64_t heads, int64_t stride, float *dx)
{
    turn(rope, cosines, sines, -1.0f, tokens, heads, stride, dx);
}
