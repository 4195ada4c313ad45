#include "train/windows.h"

#include <stdlib.h>

#include "train/random.h"

bool windows_create(struct windows *windows, int64_t tokens, int64_t length, uint64_t seed,
                    struct attn_error *error)
{
    *windows = (struct windows){.seed = seed, .length = length, .epoch = -1};
    int64_t fitting = tokens / length;
    if (fitting == 0)
        return attn_error_set(error, "%lld tokens are less than a window of %lld",
                              (long long)tokens, (long long)length);
    if (fitting > INT32_MAX)
        return attn_error_set(error, "%lld windows are more than the %d that are possible",
                              (long long)fitting, INT32_MAX);
    /* One is given up for the shift. */
    windows->count = fitting > 1 ? fitting - 1 : 1;
    windows->slack = tokens - windows->count * length;
    windows->order = malloc((size_t)windows->count * sizeof *windows->order);
    return windows->order || attn_error_memory(error);
}

void windows_destroy(struct windows *windows)
{
    free(windows->order);
    *windows = (struct windows){0};
}

/* A random order (R. Durstenfeld, 1964) and shift. */
static void begin_epoch(struct windows *windows, int64_t epoch)
{
    uint32_t words[4];
    for (int64_t i = 0; i < windows->count; i++)
        windows->order[i] = (int32_t)i;
    for (int64_t i = windows->count - 1; i > 0; i--) {
        random_draw(windows->seed, RANDOM_ORDER, epoch, i, words);
        int64_t other = random_below(words[0], i + 1);
        int32_t moved = windows->order[i];
        windows->order[i] = windows->order[other];
        windows->order[other] = moved;
    }
    random_draw(windows->seed, RANDOM_SHIFT, epoch, 0, words);
    windows->shift = random_below(words[0], windows->slack + 1);
    windows->epoch = epoch;
}

int64_t windows_begin(struct windows *windows, int64_t number)
{
    int64_t epoch = number / windows->count;
    if (epoch != windows->epoch)
        begin_epoch(windows, epoch);
    return windows->shift + windows->order[number % windows->count] * windows->length;
}
