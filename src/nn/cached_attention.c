#include "nn/cached_attention.h"

/* Sequences of one call of attn_decode, at most; how many there are changes no bit. */
enum { MOST_SEQUENCES = 64 };

/* The arguments of cached_attention. */
struct cached_work {
    const struct compute *compute;
    const struct key_value_cache *cache;
    int64_t layer;
    const struct cached_batch *batch;
    int64_t heads;
    attn_precision precision;
    const float *q;
    int64_t q_stride;
    float *blended, *stats;
    const struct attention_observer *observer;
    struct attention_output output;
};

/* One call of libattn. */
struct cached_call {
    attn_params params;
    struct key_value_views views;
    attn_tensor q, o, stats;
    int64_t key_lengths[MOST_SEQUENCES];
};

static int64_t old_length(const struct cached_work *work, int64_t sequence)
{
    return work->cache->lengths[work->batch->slots[sequence]];
}

/* [sequences][heads][tokens][d] of rows that hold a token's heads side by side. */
static attn_tensor heads_view(float *data, int64_t sequences, int64_t heads, int64_t tokens,
                              int64_t d, int64_t row)
{
    return (attn_tensor){
        .data = data,
        .type = ATTN_F32,
        .shape = {sequences, heads, tokens, d},
        .stride = {tokens * row, d, row, 1},
    };
}

/* `count` sequences from `first` on, whose slots are neighbours, with `tokens` new tokens each and
 * at most `length` in all. Its params point into the call. */
static void make_call(const struct cached_work *work, int64_t first, int64_t count, int64_t tokens,
                      int64_t length, struct cached_call *call)
{
    const int64_t d = work->cache->settings.d, heads = work->heads, width = heads * d;
    const int64_t token = work->batch->batch.starts[first];
    attn_params_init(&call->params); /* scale 1/√d */
    call->views =
        key_value_cache_views(work->cache, work->layer, work->batch->slots[first], count, length);
    /* attn_tensor has no const; q is only read. */
    call->q = heads_view((float *)work->q + token * work->q_stride, count, heads, tokens, d,
                         work->q_stride);
    call->o = heads_view(work->blended + token * width, count, heads, tokens, d, width);
    if (work->observer)
        call->stats =
            attn_tensor_packed(work->stats + 2 * heads * token, ATTN_F32, count, heads, tokens, 2);
    if (work->observer && work->observer->change) {
        call->params.change_scores = work->observer->change->change_scores;
        call->params.callback_user = work->observer->change->user;
    }
    if (call->views.k.type == ATTN_I8) {
        call->params.key_scales = &call->views.key_scales;
        call->params.value_scales = &call->views.value_scales;
    }
}

typedef attn_status attention_function(attn_context *context, const attn_params *params,
                                       const attn_tensor *q, const attn_tensor *k,
                                       const attn_tensor *v, const attn_tensor *o,
                                       const attn_tensor *stats);

static bool run(const struct cached_work *work, attention_function *attention,
                const struct cached_call *call, struct attn_error *error)
{
    const struct compute *compute = work->compute;
    const double began = compute_attention_begin(compute);
    const attn_status status =
        attention(compute->attention, &call->params, &call->q, &call->views.k, &call->views.v,
                  &call->o, work->observer ? &call->stats : NULL);
    if (!compute_attention_end(compute, began, status, error))
        return false;
    if (!work->observer)
        return true;
    const struct attention_record record = {
        .params = &call->params,
        .q = call->q,
        .k = call->views.k,
        .v = call->views.v,
        .stats = call->stats,
        .output = work->output,
    };
    if (!work->observer->observe(work->observer->user, compute, &record, error))
        return false;
    attention_change_blended(work->observer->change, call->o.shape[0] * call->o.shape[2],
                             work->heads, call->o.shape[3], call->o.data);
    return true;
}

/* Sequences of one new token, as many at once as lie side by side in the cache. */
static bool decode(const struct cached_work *work, struct attn_error *error)
{
    const int64_t sequences = work->batch->batch.sequences, *slots = work->batch->slots;
    int64_t count;
    for (int64_t first = 0; first < sequences; first += count) {
        struct cached_call call;
        int64_t longest = 0;
        for (count = 0; first + count < sequences && count < MOST_SEQUENCES &&
                        slots[first + count] == slots[first] + count;
             count++) {
            const int64_t length = old_length(work, first + count) + 1;
            call.key_lengths[count] = length;
            longest = longest < length ? length : longest;
        }
        make_call(work, first, count, 1, longest, &call);
        call.params.key_lengths = call.key_lengths;
        if (!run(work, attn_decode, &call, error))
            return false;
    }
    return true;
}

/* Token i of a sequence stands behind those that the cache held, and sees them, itself and the new
 * ones before it. */
static bool forward(const struct cached_work *work, int64_t sequence, struct attn_error *error)
{
    const int64_t tokens = packed_batch_length(&work->batch->batch, sequence);
    const int64_t length = old_length(work, sequence);
    struct cached_call call;
    make_call(work, sequence, 1, tokens, length + tokens, &call);
    call.params.causal = 1;
    call.params.alignment = ATTN_ALIGN_OFFSET;
    call.params.offset = length;
    call.params.precision = work->precision;
    return run(work, attn_forward, &call, error);
}

bool cached_attention(const struct compute *compute, struct key_value_cache *cache, int64_t layer,
                      const struct cached_batch *batch, int64_t heads, attn_precision precision,
                      const float *q, int64_t q_stride, const float *k, const float *v,
                      int64_t kv_stride, float *blended, float *stats,
                      const struct attention_observer *observer,
                      const struct attention_output *output, struct attn_error *error)
{
    const struct cached_work work = {
        .compute = compute,
        .cache = cache,
        .layer = layer,
        .batch = batch,
        .heads = heads,
        .precision = precision,
        .q = q,
        .q_stride = q_stride,
        .blended = blended,
        .stats = stats,
        .observer = observer,
        .output = output ? *output : (struct attention_output){0},
    };
    const int64_t *starts = batch->batch.starts;
    bool single = true;
    for (int64_t s = 0; s < batch->batch.sequences; s++) {
        const int64_t tokens = packed_batch_length(&batch->batch, s);
        key_value_cache_store(compute, cache, layer, batch->slots[s], old_length(&work, s), tokens,
                              k + starts[s] * kv_stride, v + starts[s] * kv_stride, kv_stride);
        single = single && tokens == 1;
    }
    if (single)
        return decode(&work, error);
    for (int64_t s = 0; s < batch->batch.sequences; s++)
        if (!forward(&work, s, error))
            return false;
    return true;
}
