#include "self_attention_reference.h"

#include <math.h>
#include <stdlib.h>

#include "cmocka_test.h"

/* y[out] = W·x + b. */
static void project(const struct reference_layer *layer, int projection, int64_t in, int64_t out,
                    const double *x, double *y)
{
    for (int64_t o = 0; o < out; o++) {
        y[o] = layer->bias[projection][o];
        for (int64_t i = 0; i < in; i++)
            y[o] += layer->weight[projection][o * in + i] * x[i];
    }
}

/* Word `word` of Philox4x32-10 (J. Salmon et al., 2011). */
static uint32_t philox(uint64_t seed, const uint32_t counter[4], int word)
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ key[1], (uint32_t)a};
        for (int n = 0; n < 4; n++)
            c[n] = next[n];
        key[0] += UINT32_C(0x9E3779B9);
        key[1] += UINT32_C(0xBB67AE85);
    }
    return c[word];
}

/* What dropout multiplies weight (sequence, head, i, j) by. */
static double dropout_factor(const struct attention_dropout *dropout, int64_t sequence,
                             int64_t head, int64_t i, int64_t j)
{
    if (dropout->rate == 0.0f)
        return 1.0;
    const uint32_t counter[4] = {(uint32_t)(j / 4), (uint32_t)i, (uint32_t)head,
                                 (uint32_t)(sequence + dropout->first_sequence)};
    bool kept = philox(dropout->seed, counter, (int)(j % 4)) >= (double)dropout->rate * 0x1p32;
    return kept ? 1.0 / (1.0 - (double)dropout->rate) : 0.0;
}

/* o[d] of one head: row i of softmax(Q·Kᵀ/√d)·V; q, k, v, o begin at the head's columns in row 0 of
 * the sequence. p[length] is scratch. */
static void blend(const struct reference_layer *layer, int64_t length, int64_t sequence,
                  int64_t head, int64_t i, const double *q, const double *k, const double *v,
                  double *o, double *p)
{
    const int64_t d = layer->d, inner = layer->heads * d;
    const int64_t seen = layer->causal ? i + 1 : length;
    double sum = 0.0;
    for (int64_t j = 0; j < seen; j++) {
        double score = 0.0;
        for (int64_t c = 0; c < d; c++)
            score += q[i * inner + c] * k[j * inner + c];
        p[j] = exp(score / sqrt((double)d));
        sum += p[j];
    }
    for (int64_t c = 0; c < d; c++)
        o[i * inner + c] = 0.0;
    for (int64_t j = 0; j < seen; j++) {
        double weight = p[j] / sum * dropout_factor(&layer->dropout, sequence, head, i, j);
        for (int64_t c = 0; c < d; c++)
            o[i * inner + c] += weight * v[j * inner + c];
    }
}

void reference_self_attention(const struct reference_layer *layer, const struct packed_batch *batch,
                              const double *x, double *y)
{
    const int64_t tokens = packed_batch_tokens(batch), inner = layer->heads * layer->d;
    const int64_t width = layer->width;
    double *q = malloc((size_t)(4 * tokens * inner + tokens) * sizeof *q);
    assert_non_null(q);
    double *k = q + tokens * inner, *v = k + tokens * inner, *o = v + tokens * inner;
    double *p = o + tokens * inner;
    for (int64_t t = 0; t < tokens; t++) {
        project(layer, REFERENCE_QUERY, width, inner, x + t * width, q + t * inner);
        project(layer, REFERENCE_KEY, width, inner, x + t * width, k + t * inner);
        project(layer, REFERENCE_VALUE, width, inner, x + t * width, v + t * inner);
    }
    for (int64_t s = 0; s < batch->sequences; s++)
        for (int64_t head = 0; head < layer->heads; head++) {
            const int64_t at = batch->starts[s] * inner + head * layer->d;
            const int64_t length = packed_batch_length(batch, s);
            for (int64_t i = 0; i < length; i++)
                blend(layer, length, s, head, i, q + at, k + at, v + at, o + at, p);
        }
    for (int64_t t = 0; t < tokens; t++)
        project(layer, REFERENCE_OUTPUT, inner, width, o + t * inner, y + t * width);
    free(q);
}
