/* Causal attention of new tokens over all that the cache holds of their sequences. */
#ifndef ATTN_NN_CACHED_ATTENTION_H
#define ATTN_NN_CACHED_ATTENTION_H

#include "nn/key_value_cache.h"
#include "nn/self_attention.h"

/* New tokens of several sequences, one behind the other. Sequence s of the batch is sequence
 * slots[s] of the cache; its tokens stand behind the cache's lengths[slots[s]] tokens. */
struct cached_batch {
    struct packed_batch batch;
    const int64_t *slots; /* [batch.sequences], all different, rising */
};

/* Scores are q·k/√d. q[tokens][heads·d], k and v[tokens][key_heads·d] with strides a token: writes
 * k and v to the cache (whose lengths stay as they are), then blended[tokens][heads·d], packed.
 * heads is a multiple of the cache's. Where every sequence has one token this is attn_decode, else
 * attn_forward, sequence by sequence. `precision` is attn_forward's.
 *
 * The observer, which may be NULL, is shown each call of libattn: record.q [sequences, heads, new
 * tokens, d], record.k and v [sequences, key heads, all tokens, d] and stats, with params that
 * attn_weights understands. `output`, which may be NULL, is what record.output shall be. */
bool cached_attention(const struct compute *compute, struct key_value_cache *cache, int64_t layer,
                      const struct cached_batch *batch, int64_t heads, attn_precision precision,
                      const float *q, int64_t q_stride, const float *k, const float *v,
                      int64_t kv_stride, float *blended, float *stats,
                      const struct attention_observer *observer,
                      const struct attention_output *output, struct attn_error *error);

/* Floats of `stats`, which is needed with an observer only (else NULL). */
static inline int64_t cached_attention_stats(int64_t heads, int64_t tokens)
{
    return 2 * heads * tokens;
}

#endif
