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
struct attn_matrix_kernels;
struct attn_dot_kernels;
struct attn_gradient_kernels;
struct attn_dot_gradient_kernels;
struct attn_inspect_kernels;

/* Where a tile of random factors stands. */
struct attn_dropout_place {
    uint64_t seed;
    uint32_t key, row, head, batch;
    uint64_t threshold; /* rate·2³² */
    float kept;         /* 1/(1 − rate) */
};

enum attn_activation {
    ATTN_ACTIVATION_GELU_ERF,  /* x·Φ(x), Φ the normal distribution function */
    ATTN_ACTIVATION_GELU_TANH, /* x·(1 + tanh u)/2, u = √(2/π)·(x + 0.044715·x³) */
    ATTN_ACTIVATION_RELU,
    ATTN_ACTIVATION_SILU /* x·σ(x), σ the logistic function */
};

/* The backward pass of a norm whose x̂ is x made normal: x̂ = (x − mean(x))·r with
 * r = 1/√(var(x) + epsilon) in layer_norm_backward, x̂ = x·r with r = 1/√(mean(x²) + epsilon) in
 * rms_norm_backward. With g = dy∘gain, row by row:
 *     dx = added + r·(g − mean(g) − x̂·mean(g∘x̂))     without mean(g) in rms_norm_backward
 *     d_gain += dy∘x̂     d_shift += dy               in the order of rows */
struct attn_norm_gradient {
    const float *x, *dy;     /* [rows][width] */
    const float *gain;       /* [width] */
    const float *added;      /* [rows][width], or NULL for 0; may be dx */
    float *dx;               /* [rows][width]; may be dy */
    float *d_gain, *d_shift; /* [width]; NULL: not wanted */
};

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

    /* Dropout (dropout_body.inc): factors[j][n] for keys key..key+keys−1 and lanes n, which are
     * rows row + n: 0 where word j mod 4 of Philox4x32-10, key = seed, counter = (j div 4, row + n,
     * head, batch), is below threshold, else `kept`. All of the counter modulo 2³²; threshold ≤
     * 2³². */
    void (*dropout)(const struct attn_dropout_place *place, int lanes, int64_t keys,
                    float *factors);
    /* x[i] = x[i] · factors[i] for `count` numbers side by side, aligned. */
    void (*multiply)(float *x, const float *factors, int64_t count);

    /* Storage (storage_body.inc): `count` elements side by side of any alignment to f32, i8 times
     * `scale`, and back, rounded to nearest even; NaN stays NaN, f16 overflows to infinity. */
    void (*widen)(enum attn_storage from, const void *x, float scale, int64_t count, float *y);
    void (*narrow)(enum attn_storage to, const float *x, int64_t count, void *y); /* not to i8 */

    /* Few queries (decode_kernels.h). */
    const struct attn_decode_kernels *decode;
    /* Weights as model files store them (matrix_kernels.h). */
    const struct attn_matrix_kernels *matrices;
    /* Products of 16-bit pairs (dot_kernels.h), or NULL where the CPU has none. */
    const struct attn_dot_kernels *dots;
    /* The backward pass (gradient_kernels.h); dot_gradients beside dots. */
    const struct attn_gradient_kernels *gradients;
    const struct attn_dot_gradient_kernels *dot_gradients;
    /* What is told of the weights (inspect_kernels.h). */
    const struct attn_inspect_kernels *inspect;

    /* The layers around attention (src/nn), rows packed (layers_body.inc).
     * y = activation(x + bias) of [rows][width]; bias is [width] or NULL, y may be x. */
    void (*activate)(enum attn_activation activation, const float *x, const float *bias,
                     int64_t rows, int64_t width, float *y);
    /* dx = dy · activation'(x) of `count` numbers side by side; dx may be dy. */
    void (*activate_backward)(enum attn_activation activation, const float *x, const float *dy,
                              int64_t count, float *dx);

    /* y = SiLU(gate) · up of `count` numbers side by side; y may be either. */
    void (*swiglu)(const float *gate, const float *up, int64_t count, float *y);
    /* d_gate = dy · up · SiLU'(gate), d_up = dy · SiLU(gate); each may be any of the inputs. */
    void (*swiglu_backward)(const float *gate, const float *up, const float *dy, int64_t count,
                            float *d_gate, float *d_up);

    /* y = (x − mean(x)) / √(var(x) + epsilon) · gain + shift over `width` numbers, where x is
     * x + bias (NULL for none); y may be x. J. Ba et al., "Layer Normalization" (2016). */
    void (*layer_norm)(const float *x, const float *bias, const float *gain, const float *shift,
                       float epsilon, int64_t rows, int64_t width, float *y);
    /* y = x / √(mean(x²) + epsilon) · gain; y may be x. B. Zhang, R. Sennrich, "Root Mean Square
     * Layer Normalization" (2019). */
    void (*rms_norm)(const float *x, const float *gain, float epsilon, int64_t rows, int64_t width,
                     float *y);
    void (*layer_norm_backward)(const struct attn_norm_gradient *gradient, float epsilon,
                                int64_t rows, int64_t width);
    void (*rms_norm_backward)(const struct attn_norm_gradient *gradient, float epsilon,
                              int64_t rows, int64_t width);

    /* −ln softmax(logits)[label] of one row; 0 ≤ label < classes. Where `gradient` is not NULL it
     * becomes scale · (softmax(logits) − one at the label); it may be the logits. A row without a
     * finite maximum, or with a NaN, gives NaN. */
    double (*cross_entropy)(const float *logits, int64_t classes, int64_t label, float scale,
                            float *gradient);
};

/* The table for an ISA that the build and the CPU have; a lower one where the build has less. */
const struct attn_kernels *attn_kernels_for(attn_isa isa);

/* Of a table with products of bf16 pairs the one that makes them in tiles, which differs in nothing
 * else; the table itself where build, CPU or system have no tiles. Asks the system for them, for the
 * whole process: see base/cpu.h. */
const struct attn_kernels *attn_kernels_with_tiles(const struct attn_kernels *kernels);

#endif
