/* The contract between whole-tensor calls and the code that knows a CPU. docs/kernel.md explains
 * it.
 *
 * A panel is a group of `lanes` queries that go through everything together, one query a SIMD lane;
 * lanes is one vector of the ISA, or two:
 *   queries  [d_qk][lanes]   Qᵀ, so that lane n of row c is element c of query n
 *   scores   [keys][lanes]   Sᵀ; a score of −inf is an excluded key
 *   output   [d_v][lanes]    Oᵀ, not yet divided by l
 *   m, l     [lanes]         running maximum and running sum (and l_rest, its rounding rest)
 * Panels are aligned to ATTN_ALIGNMENT; rows of K and V need no alignment. Lanes never mix, and a
 * lane's bits are the same in a panel of one vector and of two: a row's bits are its own.
 *
 * Every function takes any count ≥ 0; none reads past what it is given. */
#ifndef ATTN_KERNEL_KERNEL_H
#define ATTN_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "attn.h"

enum {
    ATTN_MAX_LANES = 32, /* the widest panel of any ISA */
    ATTN_KEY_BLOCK = 96, /* keys whose scores are held at once; a multiple of every tile's keys */
    ATTN_KEY_STEP = 4,   /* softmax adds every fourth key into one sum: tiles begin at multiples */
    ATTN_KEY_WORDS = ATTN_KEY_BLOCK / 32 /* words that hold one bit a key of a block */
};

/* How the elements of a row stand in memory. */
enum attn_storage {
    ATTN_STORAGE_F32,
    ATTN_STORAGE_F16,
    ATTN_STORAGE_BF16,
    ATTN_STORAGE_I8,
    ATTN_STORAGE_COUNT
};

struct attn_decode_kernels;
struct attn_dot_kernels;

struct attn_kernels {
    attn_isa isa;
    int vector_lanes; /* queries a vector; a panel has one or two vectors of them */

    /* panel[c][n] = q[n·row_stride + c·dim_stride] for n < rows; lanes from rows on are 0. */
    void (*pack_queries)(const float *q, int64_t row_stride, int64_t dim_stride, int64_t rows,
                         int64_t d, int lanes, float *panel);

    /* s[j][n] = scale · Σ_c panel[c][n] · k[j·key_stride + c], summed in the order of c, and
     * m[n] = max(m[n], s[j][n]) over all j. The elements of a key lie side by side. A NaN score may
     * or may not reach m. */
    void (*scores)(const float *panel, int lanes, int64_t d, const float *k, int64_t key_stride,
                   int64_t keys, float scale, float *s, float *m);

    /* m[n] = max(m[n], s[j][n]) over all j: for scores that were changed after `scores`. */
    void (*raise_maximum)(const float *s, int lanes, int64_t keys, float *m);

    /* Online softmax: given the maximum m_old before this block and m_new ≥ m_old with it,
     *   c = exp(m_old − m_new), l = l·c + Σ_j exp(s[j] − m_new), output = output·c,
     *   s[j] = exp(s[j] − m_new), exactly 0 where s[j] = −inf.
     * l_rest keeps what rounding took from l, so that a long row's sum is as good as a short one's;
     * both start from what begins the row, l_rest from 0.
     * A lane whose m_new is −inf has no key yet: its s become 0, its l and output stay 0. */
    void (*softmax)(float *s, int lanes, int64_t keys, const float *m_old, const float *m_new,
                    float *l, float *l_rest, float *output, int64_t d_v);

    /* output[c][n] += Σ_j s[j][n] · v[j·value_stride + c], summed in the order of j. The elements
     * of a value lie side by side. */
    void (*accumulate)(const float *s, int lanes, int64_t keys, const float *v,
                       int64_t value_stride, float *output, int64_t d_v);

    /* output = output / l, 0 in lanes where l = 0. Returns a bit for each of the first `rows` lanes
     * that holds a value which is not finite although l is finite. */
    uint32_t (*normalise)(float *output, int lanes, int64_t d_v, const float *l, int64_t rows);

    /* o[n·row_stride + c·dim_stride] = panel[c][n] for n < rows. */
    void (*unpack_output)(const float *panel, int lanes, int64_t d, float *o, int64_t row_stride,
                          int64_t dim_stride, int64_t rows);

    /* s[j] = exp(s[j] − m) / l, exactly 0 where s[j] = −inf or l = 0. */
    void (*weights)(float *s, int lanes, int64_t keys, const float *m, const float *l);

    /* Between Q·Kᵀ and the softmax (edit_body.inc).
     * x[i] = cap · tanh(x[i] / cap) for `count` numbers side by side, aligned; cap > 0. */
    void (*soft_cap)(float *x, int64_t count, float cap);

    /* s[j][n] += bias[n·query_stride + j·key_stride] for n < rows; where the bias is −inf the score
     * becomes −inf, whatever it was. */
    void (*add_bias)(float *s, int lanes, int64_t keys, const float *bias, int64_t query_stride,
                     int64_t key_stride, int64_t rows);

    /* s[j][n] −= slope · |first + n − j|, the distance rounded to f32 (ALiBi). */
    void (*subtract_distance)(float *s, int lanes, int64_t keys, float slope, int64_t first);

    /* s[j][n] = −inf where bit j mod 32 of excluded[j / 32][n] is set; keys ≤ ATTN_KEY_BLOCK,
     * `excluded` is [ATTN_KEY_WORDS][lanes], aligned. */
    void (*exclude)(float *s, int lanes, int64_t keys, const uint32_t *excluded);

    /* Bit t mod 32 of words[t / 32] = (keep[t] == 0), for t < count ≤ ATTN_KEY_BLOCK; the other
     * bits of those words are 0. */
    void (*exclusion_words)(const unsigned char *keep, int64_t count, uint32_t *words);

    /* Storage (storage_body.inc): `count` elements side by side of any alignment to f32, i8 times
     * `scale`, and back, rounded to nearest even; NaN stays NaN, f16 overflows to infinity. */
    void (*widen)(enum attn_storage from, const void *x, float scale, int64_t count, float *y);
    void (*narrow)(enum attn_storage to, const float *x, int64_t count, void *y); /* not to i8 */

    /* Few queries (decode_kernels.h). */
    const struct attn_decode_kernels *decode;
    /* Products of 16-bit pairs (dot_kernels.h), or NULL where the CPU has none. */
    const struct attn_dot_kernels *dots;

    /* The layers around attention (src/nn), rows packed.
     * gelu: x = g·Φ(g) with g = x + bias, in the exact (erf) form; x is [rows][width] in place,
     * bias is [width] or NULL. */
    void (*bias_gelu)(float *x, const float *bias, int64_t rows, int64_t width);

    /* y = (x − mean(x)) / √(var(x) + epsilon) · gain + shift over `width` numbers, where x is
     * x + bias (NULL for none); y may be x. J. Ba et al., "Layer Normalization" (2016). */
    void (*layer_norm)(const float *x, const float *bias, const float *gain, const float *shift,
                       float epsilon, int64_t rows, int64_t width, float *y);
};

/* The table for an ISA that the build and the CPU have; a lower one where the build has less. */
const struct attn_kernels *attn_kernels_for(attn_isa isa);

#endif
