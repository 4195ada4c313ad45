#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/row_blocks.h"

enum { BLOCK = 16384 }; /* numbers that one thread takes at a time */

/* A part of one tensor. */
struct optimizer_block {
    int64_t begin, count;
    bool decays;
};

static int64_t count_blocks(const struct parameters *parameters)
{
    int64_t blocks = 0;
    for (size_t i = 0; i < parameters->item_count; i++) {
        int64_t count = parameters->items[i].count;
        blocks += count / BLOCK + (count % BLOCK != 0);
    }
    return blocks;
}

static void fill_blocks(struct optimizer_block *blocks, const struct parameters *parameters)
{
    for (size_t i = 0; i < parameters->item_count; i++) {
        const struct parameter *item = &parameters->items[i];
        for (int64_t done = 0; done < item->count; done += BLOCK) {
            int64_t left = item->count - done;
            *blocks++ = (struct optimizer_block){item->begin + done, left < BLOCK ? left : BLOCK,
                                                 item->rank == 2};
        }
    }
}

static float *allocate_zeros(int64_t count)
{
    size_t bytes = (size_t)count * sizeof(float);
    float *numbers =
        attn_allocator_default.allocate(attn_allocator_default.user, bytes + 1, ATTN_ALIGNMENT);
    if (numbers)
        memset(numbers, 0, bytes);
    return numbers;
}

bool optimizer_create(struct optimizer *optimizer, const struct parameters *parameters,
                      const struct optimizer_settings *settings, struct attn_error *error)
{
    *optimizer = (struct optimizer){.settings = *settings, .count = parameters->count};
    optimizer->block_count = count_blocks(parameters);
    optimizer->blocks = calloc((size_t)optimizer->block_count + 1, sizeof *optimizer->blocks);
    optimizer->first = allocate_zeros(parameters->count);
    optimizer->second = allocate_zeros(parameters->count);
    if (!optimizer->blocks || !optimizer->first || !optimizer->second) {
        optimizer_destroy(optimizer);
        return attn_error_memory(error);
    }
    fill_blocks(optimizer->blocks, parameters);
    return true;
}

void optimizer_destroy(struct optimizer *optimizer)
{
    const struct attn_allocator *allocator = &attn_allocator_default;
    if (optimizer->first)
        allocator->release(allocator->user, optimizer->first);
    if (optimizer->second)
        allocator->release(allocator->user, optimizer->second);
    free(optimizer->blocks);
    *optimizer = (struct optimizer){0};
}

/* The numbers of one step that are the same for all parameters. */
struct step {
    const struct optimizer *optimizer;
    struct parameters *parameters;
    float factor;       /* of the gradient */
    float keep1, keep2; /* β1, β2 */
    float take1, take2; /* 1 − β1, 1 − β2 */
    float size;         /* rate/(1 − β1ᵗ) */
    float correction;   /* 1/√(1 − β2ᵗ) */
    float epsilon;
    float kept; /* of a matrix: 1 − rate·decay */
};

/* θ ← kept·θ;  m ← β1·m + (1 − β1)·g;  v ← β2·v + (1 − β2)·g²;
 * θ ← θ − size·m/(√v·correction + ε) */
static void step_block(const struct step *step, float kept, int64_t count, float *restrict theta,
                       const float *restrict gradient, float *restrict m, float *restrict v)
{
    for (int64_t i = 0; i < count; i++) {
        float g = step->factor * gradient[i];
        float mean = step->keep1 * m[i] + step->take1 * g;
        float square = step->keep2 * v[i] + step->take2 * g * g;
        m[i] = mean;
        v[i] = square;
        theta[i] = kept * theta[i] -
                   step->size * mean / (sqrtf(square) * step->correction + step->epsilon);
    }
}

static void step_blocks(const void *user, int64_t first, int64_t count)
{
    const struct step *step = user;
    const struct optimizer *optimizer = step->optimizer;
    for (int64_t n = first; n < first + count; n++) {
        const struct optimizer_block *block = &optimizer->blocks[n];
        step_block(step, block->decays ? step->kept : 1.0f, block->count,
                   step->parameters->values + block->begin,
                   step->parameters->gradients + block->begin, optimizer->first + block->begin,
                   optimizer->second + block->begin);
    }
}

void optimizer_step(struct optimizer *optimizer, struct parameters *parameters,
                    const struct compute *compute, double rate, double gradient_factor)
{
    const struct optimizer_settings *settings = &optimizer->settings;
    double steps = (double)++optimizer->steps;
    struct step step = {
        .optimizer = optimizer,
        .parameters = parameters,
        .factor = (float)gradient_factor,
        .keep1 = (float)settings->beta1,
        .keep2 = (float)settings->beta2,
        .take1 = (float)(1.0 - settings->beta1),
        .take2 = (float)(1.0 - settings->beta2),
        .size = (float)(rate / (1.0 - pow(settings->beta1, steps))),
        .correction = (float)(1.0 / sqrt(1.0 - pow(settings->beta2, steps))),
        .epsilon = (float)settings->epsilon,
        .kept = (float)(1.0 - rate * settings->decay),
    };
    row_blocks_for(compute, optimizer->block_count, BLOCK, step_blocks, &step);
}
