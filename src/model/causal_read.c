/* Reading on: chunk after chunk through all layers, and logits where they are wanted. */
#include <string.h>

#include "model/causal_session_parts.h"
#include "model/model_check.h"

static bool check_batch(const struct causal_session *session, const struct causal_input *input,
                        struct attn_error *error)
{
    const int64_t sequences = session->settings.sequences;
    if (input->sequences > sequences)
        return attn_error_set(error, "%lld texts are given, the session holds %lld",
                              (long long)input->sequences, (long long)sequences);
    const struct packed_batch batch = {input->sequences, input->starts};
    const struct causal_settings *settings = &session->pass.model->configuration.settings;
    if (!model_check_batch(&batch, settings->context, error))
        return false;
    int64_t least = 0;
    for (int64_t n = 0; input->slots && n < input->sequences; n++) {
        if (input->slots[n] < least || input->slots[n] >= sequences)
            return attn_error_set(error,
                                  "text %lld goes to sequence %lld, expected rising numbers in "
                                  "0..%lld",
                                  (long long)n, (long long)input->slots[n],
                                  (long long)sequences - 1);
        least = input->slots[n] + 1;
    }
    return model_check_ids(input->ids, packed_batch_tokens(&batch), settings->vocabulary, error);
}

static int64_t slot_of(const struct causal_input *input, int64_t n)
{
    return input->slots ? input->slots[n] : n;
}

/* Every text has room behind what its sequence holds. */
static bool check_room(const struct causal_session *session, const struct causal_input *input,
                       struct attn_error *error)
{
    const int64_t context = session->pass.model->configuration.settings.context;
    const int64_t capacity = session->settings.capacity;
    for (int64_t n = 0; n < input->sequences; n++) {
        const int64_t held = session->cache.lengths[slot_of(input, n)];
        const int64_t length = held + input->starts[n + 1] - input->starts[n];
        if (length > context)
            return attn_error_set(error, "the text has %lld tokens, the model has %lld positions",
                                  (long long)length, (long long)context);
        if (length > capacity)
            return attn_error_set(error,
                                  "the cache holds %lld tokens and is full: the text has %lld",
                                  (long long)capacity, (long long)length);
    }
    return true;
}

static bool check_observer(const struct causal_session *session, const struct causal_input *input,
                           const struct model_observer *observer, struct attn_error *error)
{
    const int64_t tokens = input->starts[input->sequences], chunk = session->settings.chunk;
    return !observer || tokens <= chunk ||
           attn_error_set(error,
                          "%lld tokens are to be observed, chunks of this session have %lld: all "
                          "must be in one",
                          (long long)tokens, (long long)chunk);
}

/* Tokens begin..begin+count−1 of the input, and the texts first..first+batch.sequences−1 that they
 * are of. */
struct chunk {
    int64_t begin, count, first;
};

/* Which piece of which sequence the chunk's tokens are. */
static void place_chunk(struct causal_session *session, const struct causal_input *input,
                        const struct chunk *chunk)
{
    struct causal_pass *pass = &session->pass;
    const int64_t end = chunk->begin + chunk->count;
    int64_t pieces = 0;
    for (int64_t n = chunk->first; n < input->sequences && input->starts[n] < end; n++) {
        const int64_t begin = input->starts[n];
        session->slots[pieces] = slot_of(input, n);
        session->starts[pieces] = begin < chunk->begin ? 0 : begin - chunk->begin;
        pieces++;
    }
    session->starts[pieces] = chunk->count;
    pass->batch.batch.sequences = pieces;
    pass->tokens = chunk->count;
}

/* x = words and, in GPT-2, positions; for Llama the angles of each position. */
static void embed(struct causal_session *session, const int32_t *ids)
{
    const struct causal_pass *pass = &session->pass;
    const struct causal_model *model = pass->model;
    const int64_t width = model->configuration.settings.width;
    for (int64_t t = 0; t < pass->tokens; t++)
        weight_matrix_row(pass->compute, &model->words, ids[t], pass->x + t * width);
    for (int64_t n = 0; n < pass->batch.batch.sequences; n++) {
        const int64_t begin = session->starts[n], end = session->starts[n + 1];
        const int64_t held = session->cache.lengths[session->slots[n]];
        if (!model->positions.data) {
            const struct rope *rope = &model->configuration.rope;
            const int64_t row = begin * (rope->d / 2);
            rope_table(rope, held, end - begin, pass->cosines + row, pass->sines + row);
            continue;
        }
        for (int64_t t = begin; t < end; t++) {
            weight_matrix_row(pass->compute, &model->positions, held + t - begin,
                              session->position);
            for (int64_t c = 0; c < width; c++)
                pass->x[t * width + c] += session->position[c];
        }
    }
}

/* The last tokens that are in the chunk, moved to the front of x, and their logits. */
static bool tell_last(const struct causal_pass *pass, const struct causal_input *input,
                      const struct chunk *chunk, float *logits, struct attn_error *error)
{
    const int64_t width = pass->model->head.in, end = chunk->begin + chunk->count;
    int64_t rows = 0;
    for (int64_t n = chunk->first; n < input->sequences && input->starts[n + 1] <= end; n++) {
        const int64_t last = input->starts[n + 1] - 1 - chunk->begin;
        memmove(pass->x + rows * width, pass->x + last * width, (size_t)width * sizeof(float));
        rows++;
    }
    return rows == 0 ||
           causal_tell(pass, rows, pass->x, logits + chunk->first * pass->model->head.out, error);
}

static bool read_chunk(struct causal_session *session, const struct causal_input *input,
                       const struct chunk *chunk, float *logits, struct attn_error *error)
{
    struct causal_pass *pass = &session->pass;
    const struct causal_model *model = pass->model;
    const int64_t layers = model->configuration.settings.layers;
    place_chunk(session, input, chunk);
    embed(session, input->ids + chunk->begin);
    for (int64_t n = 0; n < layers; n++)
        if (!model->kind->layer(pass, n, error))
            return false;
    for (int64_t n = 0; n < pass->batch.batch.sequences; n++)
        session->cache.lengths[session->slots[n]] += session->starts[n + 1] - session->starts[n];
    if (!model_check_finite(pass->x, pass->tokens * model->head.in, error))
        return false;
    switch (input->want) {
    case CAUSAL_NONE:
        return true;
    case CAUSAL_LAST:
        return tell_last(pass, input, chunk, logits, error);
    case CAUSAL_ALL:
        return causal_tell(pass, pass->tokens, pass->x, logits + chunk->begin * model->head.out,
                           error);
    }
    return false;
}

static bool read_chunks(struct causal_session *session, const struct causal_input *input,
                        float *logits, struct attn_error *error)
{
    const int64_t tokens = input->starts[input->sequences];
    struct chunk chunk = {0};
    while (chunk.begin < tokens) {
        const int64_t left = tokens - chunk.begin;
        chunk.count = left < session->settings.chunk ? left : session->settings.chunk;
        while (input->starts[chunk.first + 1] <= chunk.begin)
            chunk.first++;
        if (!read_chunk(session, input, &chunk, logits, error))
            return false;
        chunk.begin += chunk.count;
    }
    return true;
}

bool causal_session_read(struct causal_session *session, const struct causal_input *input,
                         const struct model_observer *observer, float *logits,
                         struct attn_error *error)
{
    if (!check_batch(session, input, error) || !check_room(session, input, error) ||
        !check_observer(session, input, observer, error))
        return false;
    const size_t bytes = (size_t)session->settings.sequences * sizeof *session->before;
    memcpy(session->before, session->cache.lengths, bytes);
    session->pass.observer = observer;
    const bool done = read_chunks(session, input, logits, error);
    session->pass.observer = NULL;
    if (!done)
        memcpy(session->cache.lengths, session->before, bytes);
    return done;
}
