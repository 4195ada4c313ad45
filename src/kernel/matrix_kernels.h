/* Matrices of weights as model files store them, rows of 32-bit or 16-bit numbers or of blocks with
 * a scale, and their products with f32 vectors and panels. Nothing is copied to f32 but what a
 * thread is working on.
 *
 * A row of `width` weights is attn_matrix_row_bytes(type, width) bytes of any alignment. Blocks are
 * those of GGML's format ("ggml-quants" of its published source; numbers little-endian, d, m and
 * dmin f16):
 *
 *   type   weights  bytes  layout, and weight n of a block
 *   Q8_0   32       34     d, i8 q[32]                            d·q
 *   Q4_0   32       18     d, u8 q[16]                            d·(q − 8)
 *   Q4_1   32       20     d, m, u8 q[16]                         d·q + m
 *   Q5_0   32       22     d, u32 h, u8 q[16]                     d·(q − 16)
 *   Q5_1   32       24     d, m, u32 h, u8 q[16]                  d·q + m
 *          q of weights 0–15 is the low half of byte n, of 16–31 the high half of byte n − 16; with
 *          bit n of h as its fifth bit
 *   Q4_K   256      144    d, dmin, u8 scales[12], u8 q[128]      d·scale·q − dmin·minimum
 *   Q5_K   256      176    d, dmin, u8 scales[12], h[32], q[128]  the same with a fifth bit
 *   Q6_K   256      210    u8 ql[128], qh[64], i8 scales[16], d   d·scale·(q − 32)
 */
#ifndef ATTN_KERNEL_MATRIX_KERNELS_H
#define ATTN_KERNEL_MATRIX_KERNELS_H

#include <stddef.h>
#include <stdint.h>

enum attn_matrix_type {
    ATTN_MATRIX_F32,
    ATTN_MATRIX_F16,
    ATTN_MATRIX_BF16,
    ATTN_MATRIX_Q8_0,
    ATTN_MATRIX_Q4_0,
    ATTN_MATRIX_Q4_1,
    ATTN_MATRIX_Q5_0,
    ATTN_MATRIX_Q5_1,
    ATTN_MATRIX_Q4_K,
    ATTN_MATRIX_Q5_K,
    ATTN_MATRIX_Q6_K,
    ATTN_MATRIX_TYPES
};

enum {
    ATTN_MATRIX_VECTORS = 4, /* vectors that share one pass over the weights */
    ATTN_MATRIX_LARGEST_BLOCK = 256
};

/* Weights that stand or fall together: `width` is a multiple of it. */
static inline int64_t attn_matrix_block(enum attn_matrix_type type)
{
    switch (type) {
    case ATTN_MATRIX_Q4_K:
    case ATTN_MATRIX_Q5_K:
    case ATTN_MATRIX_Q6_K:
        return 256;
    case ATTN_MATRIX_F32:
    case ATTN_MATRIX_F16:
    case ATTN_MATRIX_BF16:
        return 1;
    default:
        return 32;
    }
}

/* Bytes of one block. */
static inline int64_t attn_matrix_block_bytes(enum attn_matrix_type type)
{
    static const unsigned char bytes[ATTN_MATRIX_TYPES] = {
        [ATTN_MATRIX_F32] = 4,    [ATTN_MATRIX_F16] = 2,    [ATTN_MATRIX_BF16] = 2,
        [ATTN_MATRIX_Q8_0] = 34,  [ATTN_MATRIX_Q4_0] = 18,  [ATTN_MATRIX_Q4_1] = 20,
        [ATTN_MATRIX_Q5_0] = 22,  [ATTN_MATRIX_Q5_1] = 24,  [ATTN_MATRIX_Q4_K] = 144,
        [ATTN_MATRIX_Q5_K] = 176, [ATTN_MATRIX_Q6_K] = 210,
    };
    return bytes[type];
}

static inline int64_t attn_matrix_row_bytes(enum attn_matrix_type type, int64_t width)
{
    return width / attn_matrix_block(type) * attn_matrix_block_bytes(type);
}

/* Every function takes any count ≥ 0 and reads nothing past what it is given. */
struct attn_matrix_kernels {
    /* Bytes that hold a vector of `width` numbers as `multiply` wants it, a multiple of
     * ATTN_ALIGNMENT. */
    int64_t (*vector_bytes)(enum attn_matrix_type type, int64_t width);

    /* x[width] into `packed`, aligned to ATTN_ALIGNMENT: in the kernels' own order, with what
     * belongs to a block computed once (the sum of its x, for minima). All of it
     * is f32: no x is rounded further. */
    void (*pack_vector)(enum attn_matrix_type type, const float *x, int64_t width, void *packed);

    /* y[i·y_stride + r] = Σ_c weight_r[c] · x_i[c] for rows r and vectors i < count ≤
     * ATTN_MATRIX_VECTORS; vector i is packed at packed + i·vector_bytes, row r of the weights at
     * weights + r·attn_matrix_row_bytes. A number's bits depend on its row and its vector alone. It
     * is off by a few 2⁻²⁴ of the row's largest |weight| times Σ|x|. Rows are read in four streams
     * of neighbours with a look ahead, so some hundred rows a call are faster than a few. */
    void (*multiply)(enum attn_matrix_type type, const void *weights, int64_t rows, int64_t width,
                     const void *packed, int64_t count, float *y, int64_t y_stride);

    /* The weights of one row from `begin` on, `count` of them (both multiples of the block), as
     * f32: the definition above, each rounded once (f16 times small integers is exact in f32; the
     * sum with a minimum rounds). */
    void (*unpack)(enum attn_matrix_type type, const void *row, int64_t begin, int64_t count,
                   float *values);

    /* The same, rounded to bf16 (to nearest even). */
    void (*unpack_bf16)(enum attn_matrix_type type, const void *row, int64_t begin, int64_t count,
                        uint16_t *values);
};

#endif
