#include "model/embedding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tokens a batch, padding never among them. Large enough for the matrix products of the linear
 * layers to run at full speed, small enough for the widest activations ([tokens][inner], 6 MB for
 * an inner size of 1536) to stay in the last-level cache between two of them. */
enum { BATCH_TOKENS = 1024 };

struct ordered {
    size_t index; /* of the caller's encodings */
    size_t tokens;
};

static int compare_lengths(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;
    if (a->tokens != b->tokens)
        return a->tokens < b->tokens ? -1 : 1;
    return a->index < b->index ? -1 : 1; /* equal lengths keep their order */
}

/* The encodings in order of length. */
static struct ordered *sort_by_length(const struct encoding *encodings, size_t count)
{
    struct ordered *order = calloc(count, sizeof *order);
    if (!order)
        return NULL;
    for (size_t n = 0; n < count; n++)
        order[n] = (struct ordered){n, encodings[n].token_count};
    qsort(order, count, sizeof *order, compare_lengths);
    return order;
}

/* One batch; its arrays are large enough for any that is formed. */
struct batch {
    int64_t *starts; /* [sequences + 1] */
    int32_t *ids;    /* [tokens] */
    int32_t *types;  /* [tokens] */
    float *hidden;   /* [tokens][hidden] */
};

static void batch_release(struct batch *batch)
{
    free(batch->starts);
    free(batch->ids);
    free(batch->types);
    free(batch->hidden);
}

static bool batch_reserve(struct batch *batch, size_t tokens, size_t hidden)
{
    /* A sequence has at least one token, so there are no more sequences than tokens. */
    *batch = (struct batch){
        .starts = calloc(tokens + 1, sizeof *batch->starts),
        .ids = calloc(tokens, sizeof *batch->ids),
        .types = calloc(tokens, sizeof *batch->types),
        .hidden = calloc(tokens, hidden * sizeof *batch->hidden),
    };
    if (batch->starts && batch->ids && batch->types && batch->hidden)
        return true;
    batch_release(batch);
    return false;
}

/* How many encodings from `first` on make one batch: at least one, and as many as fit. */
static size_t batch_size(const struct ordered *order, size_t first, size_t count)
{
    size_t tokens = order[first].tokens, end = first + 1;
    while (end < count &&
           order[end].tokens <= BATCH_TOKENS - (tokens < BATCH_TOKENS ? tokens : BATCH_TOKENS))
        tokens += order[end++].tokens;
    return end - first;
}

/* Copies encodings one behind the other. */
static struct bert_input batch_fill(struct batch *batch, const struct encoding *encodings,
                                    const struct ordered *order, size_t count)
{
    int64_t token = 0;
    batch->starts[0] = 0;
    for (size_t n = 0; n < count; n++) {
        const struct encoding *encoding = &encodings[order[n].index];
        for (size_t t = 0; t < encoding->token_count; t++, token++) {
            batch->ids[token] = encoding->tokens[t].id;
            batch->types[token] = encoding->tokens[t].type;
        }
        batch->starts[n + 1] = token;
    }
    return (struct bert_input){
        .batch = {.sequences = (int64_t)count, .starts = batch->starts},
        .ids = batch->ids,
        .types = batch->types,
    };
}

/* vector[hidden] of the hidden states [tokens][hidden] of one text. */
static void pool(const struct embedding_settings *settings, const float *states, size_t tokens,
                 size_t hidden, float *vector)
{
    double square = 0.0;
    for (size_t c = 0; c < hidden; c++) {
        double sum = (double)states[c];
        if (settings->pooling == POOLING_MEAN) {
            for (size_t t = 1; t < tokens; t++)
                sum += (double)states[t * hidden + c];
            sum /= (double)tokens;
        }
        vector[c] = (float)sum;
        square += (double)vector[c] * (double)vector[c];
    }
    if (settings->normalize && square > 0.0) {
        double factor = 1.0 / sqrt(square);
        for (size_t c = 0; c < hidden; c++)
            vector[c] = (float)((double)vector[c] * factor);
    }
}

static bool compute_batches(const struct bert *model, const struct compute *compute,
                            const struct embedding_settings *settings,
                            const struct encoding *encodings, const struct ordered *order,
                            size_t count, struct batch *batch, float *vectors,
                            struct attn_error *error)
{
    const size_t hidden = (size_t)bert_get_config(model)->hidden;
    for (size_t first = 0; first < count;) {
        size_t size = batch_size(order, first, count);
        struct bert_input input = batch_fill(batch, encodings, order + first, size);
        if (!bert_forward(model, compute, &input, batch->hidden, NULL, error))
            return false;

        const float *states = batch->hidden;
        for (size_t n = 0; n < size; n++) {
            size_t tokens = order[first + n].tokens;
            pool(settings, states, tokens, hidden, vectors + order[first + n].index * hidden);
            states += tokens * hidden;
        }
        first += size;
    }
    return true;
}

bool embedding_compute(const struct bert *model, const struct compute *compute,
                       const struct embedding_settings *settings, const struct encoding *encodings,
                       size_t count, float *vectors, struct attn_error *error)
{
    if (count == 0)
        return true;
    struct ordered *order = sort_by_length(encodings, count);
    if (!order)
        return attn_error_memory(error);

    const struct bert_config *config = bert_get_config(model);
    size_t longest = order[count - 1].tokens;
    struct batch batch;
    bool done = false;
    if (order[0].tokens == 0)
        attn_error_set(error, "a text has no token");
    else if (longest > (size_t)config->positions)
        attn_error_set(error, "a text has %zu tokens, the model has %lld positions", longest,
                       (long long)config->positions);
    else if (!batch_reserve(&batch, longest > BATCH_TOKENS ? longest : BATCH_TOKENS,
                            (size_t)config->hidden))
        attn_error_memory(error);
    else {
        done = compute_batches(model, compute, settings, encodings, order, count, &batch, vectors,
                               error);
        batch_release(&batch);
    }
    free(order);
    return done;
}
