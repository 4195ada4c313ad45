#include "model/language_memory.h"

#include <stddef.h>

#include "base/checked.h"
#include "model/language_parts.h"

enum {
    TOKEN_STEP = 64,         /* batches that grow by a token at a time seldom need a new block */
    LOGIT_NUMBERS = 1 << 26, /* at most so many logits at a time, 256 MB, and at least one row */
    ROW_MULTIPLE = ATTN_ALIGNMENT / sizeof(float)
};

/* Hands out the parts of a block one behind the other; with base NULL it only adds up. */
struct arena {
    char *base;
    int64_t used; /* bytes */
    bool failed;  /* they do not fit 64 bits */
};

static void *take(struct arena *arena, int64_t rows, int64_t row_bytes)
{
    int64_t begin = arena->used, bytes, end;
    if (!attn_checked_multiply(rows, row_bytes, &bytes) || !attn_checked_add(begin, bytes, &end) ||
        !attn_checked_add(end, ATTN_ALIGNMENT - 1, &end)) {
        arena->failed = true;
        return NULL;
    }
    arena->used = end / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
    return arena->base ? arena->base + begin : NULL;
}

static float *take_floats(struct arena *arena, int64_t rows, int64_t width)
{
    return take(arena, rows, width * (int64_t)sizeof(float));
}

/* Rows of logits at a time: as few blocks as the limit allows, of one size. */
static int64_t logit_rows(int64_t tokens, int64_t stride)
{
    int64_t most = LOGIT_NUMBERS / stride > 0 ? LOGIT_NUMBERS / stride : 1;
    int64_t blocks = (tokens + most - 1) / most;
    return (tokens + blocks - 1) / blocks;
}

static void take_layers(struct language_memory *memory, const struct language_model *model,
                        struct arena *arena)
{
    const struct language_model_settings *settings = &model->settings;
    const int64_t tokens = memory->tokens, kept = memory->learning ? settings->layers : 1;
    memory->wide_stride = tokens * settings->width;
    memory->inner_stride = tokens * settings->inner;
    memory->attention_stride = self_attention_workspace(&model->layers[0].attention, tokens);

    const bool post_norm = settings->kind == LANGUAGE_MODEL_BERT;
    memory->first = (struct layer_memory){
        .x = take_floats(arena, kept + 1, memory->wide_stride),
        .attention = take_floats(arena, kept, memory->attention_stride),
        .middle = take_floats(arena, kept, memory->wide_stride),
        .inner = take_floats(arena, kept, memory->inner_stride),
        .end = take_floats(arena, post_norm ? kept : 0, memory->wide_stride),
    };
}

static void take_scratch(struct language_memory *memory, const struct language_model *model,
                         struct arena *arena)
{
    const struct language_model_settings *settings = &model->settings;
    const int64_t tokens = memory->tokens, backward = memory->learning ? tokens : 0;
    for (int n = 0; n < WIDE_SCRATCH; n++)
        memory->wide[n] = take_floats(arena, tokens, settings->width);
    memory->active = take_floats(arena, tokens, settings->inner);
    memory->d_active = take_floats(arena, backward, settings->inner);
    memory->dx = take_floats(arena, backward, settings->width);
    memory->attention = take_floats(
        arena, 1,
        backward > 0 ? self_attention_backward_workspace(&model->layers[0].attention, tokens) : 0);
    memory->logit_stride = (settings->vocabulary + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE;
    memory->logit_rows = logit_rows(tokens, memory->logit_stride);
    memory->logits = take_floats(arena, memory->logit_rows, memory->logit_stride);
    memory->rows = take(arena, tokens, sizeof *memory->rows);
    memory->labels = take(arena, tokens, sizeof *memory->labels);
    memory->positions = take(arena, tokens, sizeof *memory->positions);
    memory->zeros = take(arena, tokens, sizeof *memory->zeros);
}

static int64_t lay_out(struct language_memory *memory, const struct language_model *model,
                       struct arena arena)
{
    take_layers(memory, model, &arena);
    take_scratch(memory, model, &arena);
    return arena.failed ? -1 : arena.used;
}

bool language_memory_reserve(struct language_memory *memory, const struct language_model *model,
                             int64_t tokens, bool learning, struct attn_error *error)
{
    if (tokens <= memory->tokens && (memory->learning || !learning))
        return true;
    /* Far beyond any memory; below it no product of a layer's sizes and the tokens overflows. */
    enum { TOKEN_LIMIT = 1 << 30 };
    if (tokens > TOKEN_LIMIT)
        return attn_error_set(error, "a batch has %lld tokens, at most %d are possible",
                              (long long)tokens, TOKEN_LIMIT);
    struct language_memory next = {
        .block = memory->block,
        .tokens = (tokens + TOKEN_STEP - 1) / TOKEN_STEP * TOKEN_STEP,
        .learning = learning || memory->learning,
    };
    const int64_t bytes = lay_out(&next, model, (struct arena){0});
    void *base = bytes < 0 || (uint64_t)bytes > SIZE_MAX
                     ? NULL
                     : attn_workspace_reserve(&next.block, &attn_allocator_default, (size_t)bytes);
    if (!base) {
        *memory = (struct language_memory){.block = next.block};
        return attn_error_memory(error);
    }
    lay_out(&next, model, (struct arena){.base = base});
    *memory = next;
    return true;
}

void language_memory_release(struct language_memory *memory)
{
    attn_workspace_release(&memory->block, &attn_allocator_default);
    *memory = (struct language_memory){0};
}

struct layer_memory language_memory_layer(const struct language_memory *memory, int64_t layer)
{
    const struct layer_memory *first = &memory->first;
    const int64_t kept = memory->learning ? layer : 0;
    /* Where nothing is kept, inputs and outputs take turns. */
    const int64_t x = memory->learning ? layer : layer % 2;
    const int64_t next = memory->learning ? layer + 1 : (layer + 1) % 2;
    return (struct layer_memory){
        .x = first->x + x * memory->wide_stride,
        .next = first->x + next * memory->wide_stride,
        .attention = first->attention + kept * memory->attention_stride,
        .middle = first->middle + kept * memory->wide_stride,
        .inner = first->inner + kept * memory->inner_stride,
        .end = first->end + kept * memory->wide_stride,
    };
}
