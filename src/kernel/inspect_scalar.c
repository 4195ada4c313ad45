/* Inspection in plain C: what inspect_body.inc is measured against. With d_j = s_j − m a row's
 * entropy is
 *
 *     −Σ p_j ln p_j = ln l − t/l      p_j = exp(d_j)/l      l = Σ exp(d_j)      t = Σ exp(d_j)·d_j
 *
 * and where a block raises m to m', every d_j falls by m' − m: t' = exp(m − m')·(t + (m − m')·l).
 */
#include "kernel/inspect_scalar.h"

#include <math.h>
#include <string.h>

#include "kernel/kernel_table.h"

/* Moves what is smaller than s one place down, and puts s there. */
static void insert(const struct attn_top_lists *top, int lane, float s, int32_t key)
{
    float *scores = top->lists + lane * 2 * top->width, *keys = scores + top->width;
    int64_t place = top->count - 1;
    for (; place > 0 && scores[place - 1] < s; place--) {
        scores[place] = scores[place - 1];
        memcpy(&keys[place], &keys[place - 1], sizeof *keys);
    }
    scores[place] = s;
    memcpy(&keys[place], &key, sizeof key);
    top->limits[lane] = scores[top->count - 1];
}

static void select_scalar(const float *s, int lanes, int64_t keys, int64_t key,
                          const struct attn_top_lists *top)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++)
            if (top->limits[n] < s[j * lanes + n])
                insert(top, n, s[j * lanes + n], (int32_t)(key + j));
}

static void entropy_scalar(const float *s, int lanes, int64_t keys, const float *m_old,
                           const float *m_new, const float *l, const float *l_rest, float *t,
                           float *t_rest)
{
    for (int n = 0; n < lanes; n++) {
        double sum = 0.0;
        if (m_old[n] != -INFINITY) {
            double moved = (double)m_old[n] - (double)m_new[n];
            sum = (double)t[n] + (double)t_rest[n] + moved * ((double)l[n] + (double)l_rest[n]);
            sum *= (double)expf(m_old[n] - m_new[n]);
        }
        for (int64_t j = 0; j < keys; j++) {
            float distance = s[j * lanes + n] - m_new[n];
            if (s[j * lanes + n] != -INFINITY)
                sum += (double)expf(distance) * (double)distance;
        }
        t[n] = (float)sum;
        t_rest[n] = (float)(sum - (double)t[n]);
    }
}

static void softmax_entropy_scalar(float *s, int lanes, int64_t keys, const float *m_old,
                                   const float *m_new, float *l, float *l_rest, float *t,
                                   float *t_rest, float *output, int64_t d_v)
{
    entropy_scalar(s, lanes, keys, m_old, m_new, l, l_rest, t, t_rest);
    attn_kernels_scalar.softmax(s, lanes, keys, m_old, m_new, l, l_rest, output, d_v);
}

static void add_weights_scalar(const float *s, int lanes, int64_t keys, const float *m,
                               const float *inverse_l, float *sums)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++)
            if (s[j * lanes + n] != -INFINITY && inverse_l[n] != 0.0f)
                sums[j * lanes + n] += expf(s[j * lanes + n] - m[n]) * inverse_l[n];
}

static void add_lanes_scalar(const float *sums, int lanes, int64_t keys, double *totals)
{
    for (int64_t j = 0; j < keys; j++)
        for (int n = 0; n < lanes; n++)
            totals[j] += (double)sums[j * lanes + n];
}

const struct attn_inspect_kernels attn_inspect_kernels_scalar = {
    .select = select_scalar,
    .softmax_entropy = softmax_entropy_scalar,
    .entropy = entropy_scalar,
    .add_weights = add_weights_scalar,
    .add_lanes = add_lanes_scalar,
};
