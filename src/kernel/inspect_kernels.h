/* What is told of the weights while scores pass by (docs/kernel.md, "Inspection"). Panels are those
 * of kernel.h: lanes are queries, scores are final, −inf is an excluded key. */
#ifndef ATTN_KERNEL_INSPECT_KERNELS_H
#define ATTN_KERNEL_INSPECT_KERNELS_H

#include <stdint.h>

/* The largest scores of each lane with their keys, best first; of places that no score has taken
 * the score is −inf and the key −1. A list of scores has its keys behind it, so that both are near.
 */
struct attn_top_lists {
    float *lists;  /* [lanes][2][width], aligned: scores, and the bits of an int32_t each; entries
                    * from `count` on are of no meaning */
    float *limits; /* [lanes]: the last score of each list, side by side; +inf in a lane that is
                    * no row's, whose list is of no meaning */
    int64_t count; /* of a list, 1 or more */
    int64_t width; /* a multiple of vector_lanes, count or more */
};

struct attn_inspect_kernels {
    /* At most ATTN_KEY_BLOCK keys. Takes scores s[j][n] of keys key + j, of which a list has the
     * lower 32 bits (with more keys than that nobody asks which), into the lists, those that are
     * larger than the smallest there: of equal ones those stay that came first. −inf and NaN never
     * enter; beside a NaN of the same lane which others do is not promised. */
    void (*select)(const float *s, int lanes, int64_t keys, int64_t key,
                   const struct attn_top_lists *top);

    /* `softmax` of kernel.h, with the same bits, and beside l
     *   t = c · (t + (m_old − m_new) · l) + Σ_j exp(s[j] − m_new) · (s[j] − m_new),
     * l as it was before; a score of −inf adds nothing. t_rest is to t what l_rest is to l; both
     * start from 0. */
    void (*softmax_entropy)(float *s, int lanes, int64_t keys, const float *m_old,
                            const float *m_new, float *l, float *l_rest, float *t, float *t_rest,
                            float *output, int64_t d_v);
    /* The same of t alone, bit for bit, before another softmax takes the scores. */
    void (*entropy)(const float *s, int lanes, int64_t keys, const float *m_old, const float *m_new,
                    const float *l, const float *l_rest, float *t, float *t_rest);

    /* sums[j][n] += exp(s[j][n] − m[n]) · inverse_l[n]; exactly nothing where s = −inf or
     * inverse_l = 0, whatever else is there. m = −inf comes with inverse_l = 0. */
    void (*add_weights)(const float *s, int lanes, int64_t keys, const float *m,
                        const float *inverse_l, float *sums);
    /* totals[j] += Σ_n sums[j][n], all lanes. */
    void (*add_lanes)(const float *sums, int lanes, int64_t keys, double *totals);
};

#endif
