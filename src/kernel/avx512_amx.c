/* Products of bf16 pairs on the tiles of AMX: what dot_kernels.h and gradient_kernels.h ask for.
 * TDPBF16PS multiplies 16 rows of 32 halves by 16 rows of 16 pairs. An element's products of even
 * and of odd places are summed apart from 0 on, each in their order and rounded at each step; the
 * two sums are added, and the result to the element (Intel SDM, volume 2, TDPBF16PS). So a tile
 * that ends early gives what one gives that is filled up with zeros, and an element's bits depend
 * on which 32 places are summed together, but not on the other rows and columns. */
#if !(defined(__AVX512F__) && defined(__AVX512BF16__) &&                                           \
      (defined(__AMX_BF16__) || defined(__AMXBF16__)))
#error "compile this file with -mavx512f -mavx512bf16 -mamx-tile -mamx-bf16"
#endif

#include <math.h>
#include <string.h>

#include "kernel/compiler.h"
#include "kernel/dot_kernels.h"
#include "kernel/gradient_kernels.h"
#include "kernel/kernel_table.h"
#include "kernel/vector_avx512.h"

#include "kernel/bf16_pairs_body.inc"
#include "kernel/exp_table_body.inc"
#include "kernel/online_softmax_body.inc"

#include "kernel/bf16_panels_body.inc"

enum {
    TILES = 8,
    TILE_ROWS = 16,
    TILE_PAIRS = 16, /* of a row of A: rows of B */
    TILE_HALVES = 2 * TILE_PAIRS,
    TILE_BYTES = 64 /* of a row */
};
_Static_assert(ATTN_KEY_BLOCK % TILE_HALVES == 0, "a block of keys ends with a tile");

/* Which tile is which. Two names for A and B each: whole ones, and those of the last pairs. Numbers
 * of tiles are parts of instructions. */
#define A_WHOLE 4
#define A_LAST  5
#define B_WHOLE 6
#define B_LAST  7

/* What LDTILECFG takes (Intel SDM, volume 1, section 18.3.1). */
struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
_Static_assert(sizeof(struct tile_shapes) == 64, "as the instruction reads it");

/* Tiles of A, and so of C, with that many rows; 0 ≤ last_pairs < 16. */
static void take_shapes(int64_t rows, int64_t last_pairs)
{
    struct tile_shapes wanted = {.palette = 1}, held;
    for (int tile = 0; tile < TILES; tile++) {
        wanted.row_bytes[tile] = TILE_BYTES;
        wanted.rows[tile] = (uint8_t)rows;
    }
    wanted.row_bytes[A_LAST] = (uint16_t)(4 * last_pairs);
    wanted.rows[A_LAST] = (uint8_t)(last_pairs ? rows : 0);
    wanted.rows[B_WHOLE] = TILE_PAIRS;
    wanted.row_bytes[B_LAST] = (uint16_t)(last_pairs ? TILE_BYTES : 0);
    wanted.rows[B_LAST] = (uint8_t)last_pairs;
    /* To load shapes takes as long as ten products, to look at them next to nothing. */
    IN_ORDER();
    _tile_storeconfig(&held);
    IN_ORDER();
    if (memcmp(&held, &wanted, sizeof held) == 0)
        return;
    IN_ORDER();
    _tile_loadconfig(&wanted);
}

static void release(void)
{
    _tile_release();
}

/* C[rows][columns] of floats, and A[rows][2·pairs] · B[pairs][columns] of halves and pairs; columns
 * are a multiple of 16. Strides are in bytes. */
struct tile_product {
    const char *a, *b;
    char *c;
    int64_t a_stride, b_stride, c_stride;
    int64_t rows, pairs, columns;
};

/* One tile of pairs into the sums of a block. */
#define ADD_PRODUCTS(A, B)                                                                         \
    do {                                                                                           \
        _tile_loadd(A, a, x->a_stride);                                                            \
        _tile_loadd(B, b, x->b_stride);                                                            \
        _tile_dpbf16ps(0, A, B);                                                                   \
        if (wide) {                                                                                \
            _tile_loadd(B, b + TILE_BYTES, x->b_stride);                                           \
            _tile_dpbf16ps(1, A, B);                                                               \
        }                                                                                          \
        if (tall) {                                                                                \
            _tile_loadd(A, a + TILE_ROWS * x->a_stride, x->a_stride);                              \
            if (wide) {                                                                            \
                _tile_dpbf16ps(3, A, B);                                                           \
                _tile_loadd(B, b, x->b_stride);                                                    \
            }                                                                                      \
            _tile_dpbf16ps(2, A, B);                                                               \
        }                                                                                          \
    } while (0)

enum sums_begin { FROM_ZERO, FROM_C };

/* Up to two by two tiles of C from row and column on: four sums, so that none waits for itself. */
ALWAYS_INLINE void product_block(const struct tile_product *x, int64_t row, int64_t column,
                                 bool tall, bool wide, enum sums_begin begin)
{
    const char *a = x->a + row * x->a_stride, *b = x->b + column * 4;
    char *c = x->c + row * x->c_stride + column * 4, *c_below = c + TILE_ROWS * x->c_stride;
    if (begin == FROM_ZERO) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, c, x->c_stride);
        if (wide)
            _tile_loadd(1, c + TILE_BYTES, x->c_stride);
        if (tall)
            _tile_loadd(2, c_below, x->c_stride);
        if (tall && wide)
            _tile_loadd(3, c_below + TILE_BYTES, x->c_stride);
    }
    int64_t pairs = x->pairs;
    for (; pairs >= TILE_PAIRS; pairs -= TILE_PAIRS) {
        ADD_PRODUCTS(A_WHOLE, B_WHOLE);
        a += TILE_BYTES;
        b += TILE_PAIRS * x->b_stride;
    }
    if (pairs)
        ADD_PRODUCTS(A_LAST, B_LAST);
    _tile_stored(0, c, x->c_stride);
    if (wide)
        _tile_stored(1, c + TILE_BYTES, x->c_stride);
    if (tall)
        _tile_stored(2, c_below, x->c_stride);
    if (tall && wide)
        _tile_stored(3, c_below + TILE_BYTES, x->c_stride);
}

ALWAYS_INLINE void product_strip(const struct tile_product *x, int64_t row, bool tall,
                                 enum sums_begin begin)
{
    int64_t column = 0;
    for (; column + 2 * TILE_ROWS <= x->columns; column += 2 * TILE_ROWS)
        product_block(x, row, column, tall, true, begin);
    if (column < x->columns)
        product_block(x, row, column, tall, false, begin);
}

/* Rows `row` to `end`. */
ALWAYS_INLINE void product_rows(const struct tile_product *x, int64_t row, int64_t end,
                                enum sums_begin begin)
{
    const int64_t last_pairs = x->pairs % TILE_PAIRS;
    IN_ORDER();
    if (end - row >= TILE_ROWS)
        take_shapes(TILE_ROWS, last_pairs);
    for (; row + 2 * TILE_ROWS <= end; row += 2 * TILE_ROWS)
        product_strip(x, row, true, begin);
    if (row + TILE_ROWS <= end) {
        product_strip(x, row, false, begin);
        row += TILE_ROWS;
    }
    if (row < end) {
        take_shapes(end - row, last_pairs);
        product_strip(x, row, false, begin);
    }
}

/* Several maxima, so that none waits for itself. */
static void scale_scores(float *s, int lanes, int64_t keys, float scale, float *m)
{
    enum { MAXIMA = 4 };
    const vector factor = vector_set(scale);
    for (int half = 0; half < lanes; half += VECTOR_LANES) {
        vector maxima[MAXIMA];
        UNROLL
        for (int n = 0; n < MAXIMA; n++)
            maxima[n] = vector_load_aligned(m + half);
        float *score = s + half;
        int64_t j = 0;
        for (; j + MAXIMA <= keys; j += MAXIMA) {
            UNROLL
            for (int n = 0; n < MAXIMA; n++, score += lanes) {
                vector scaled = vector_multiply(factor, vector_load_aligned(score));
                vector_store_aligned(score, scaled);
                maxima[n] = vector_maximum(scaled, maxima[n]);
            }
        }
        for (; j < keys; j++, score += lanes) {
            vector scaled = vector_multiply(factor, vector_load_aligned(score));
            vector_store_aligned(score, scaled);
            maxima[0] = vector_maximum(scaled, maxima[0]);
        }
        vector_store_aligned(m + half, vector_maximum(vector_maximum(maxima[0], maxima[1]),
                                                      vector_maximum(maxima[2], maxima[3])));
    }
}

static void scores(const uint32_t *panel, int lanes, int64_t d, const uint16_t *k,
                   int64_t key_stride, int64_t keys, float scale, float *s, float *m)
{
    const struct tile_product x = {.a = (const char *)k,
                                   .a_stride = key_stride * 2,
                                   .b = (const char *)panel,
                                   .b_stride = lanes * 4,
                                   .c = (char *)s,
                                   .c_stride = lanes * 4,
                                   .rows = keys,
                                   .pairs = (d + 1) / 2,
                                   .columns = lanes};
    product_rows(&x, 0, keys, FROM_ZERO);
    scale_scores(s, lanes, keys, scale, m);
}

/* Places of a block from the tile on that holds `first`, to the end of the one before `end`. */
static int64_t tile_begin(int64_t first)
{
    return first - first % TILE_HALVES;
}
static int64_t tile_end(int64_t end)
{
    return tile_begin(end + TILE_HALVES - 1);
}

/* Zeros around the weights of a block, as far as tiles reach. */
static void clear_around(uint32_t *weights, int lanes, int64_t first, int64_t keys)
{
    const size_t row = (size_t)lanes * sizeof *weights;
    int64_t begin = tile_begin(first) / 2, end = tile_end(first + keys) / 2;
    int64_t used = (first + keys + 1) / 2;
    memset(weights + begin * lanes, 0, (size_t)(first / 2 - begin) * row);
    memset(weights + used * lanes, 0, (size_t)(end - used) * row);
}

static void softmax(const float *s, int lanes, int64_t first, int64_t keys, const float *m_old,
                    const float *m_new, float *l, float *l_rest, float *output, int64_t d_v,
                    uint32_t *weights)
{
    write_weights(s, lanes, first, keys, m_old, m_new, l, l_rest, output, d_v, weights);
    clear_around(weights, lanes, first, keys);
}

/* 32 places of a block and 16 dims of V to Vᵀ; those before `first` and from `end` on are 0. */
static void turn_values(const uint16_t *v, int64_t value_stride, int64_t place, int64_t first,
                        int64_t end, int64_t dims, uint16_t *turned)
{
    vector pairs[VECTOR_LANES];
    for (int64_t i = 0; i < VECTOR_LANES; i++) {
        int64_t low = place + 2 * i, high = low + 1;
        __m256i halves[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        if (low >= first && low < end)
            halves[0] = load_halves(v + (low - first) * value_stride, dims);
        if (high >= first && high < end)
            halves[1] = load_halves(v + (high - first) * value_stride, dims);
        pairs[i] = _mm512_castsi512_ps(pair_halves(halves[0], halves[1]));
    }
    vector_transpose(pairs);
    for (int64_t i = 0; i < VECTOR_LANES && i < dims; i++)
        _mm512_storeu_si512(turned + i * ATTN_KEY_BLOCK, _mm512_castps_si512(pairs[i]));
}

/* Vᵀ of a block: [d_v][ATTN_KEY_BLOCK] halves. */
static void pack_values(const uint16_t *v, int64_t value_stride, int64_t first, int64_t keys,
                        int64_t d_v, uint32_t *values)
{
    uint16_t *turned = (uint16_t *)(void *)values;
    for (int64_t place = tile_begin(first); place < first + keys; place += TILE_HALVES)
        for (int64_t c = 0; c < d_v; c += VECTOR_LANES)
            turn_values(v + c, value_stride, place, first, first + keys, d_v - c,
                        turned + c * ATTN_KEY_BLOCK + place);
}

static void accumulate(const uint32_t *weights, int lanes, int64_t first, int64_t keys,
                       const uint32_t *values, float *output, int64_t d_v)
{
    int64_t begin = tile_begin(first), end = tile_end(first + keys);
    const struct tile_product x = {.a = (const char *)values + begin * 2,
                                   .a_stride = ATTN_KEY_BLOCK * 2,
                                   .b = (const char *)(weights + begin / 2 * lanes),
                                   .b_stride = lanes * 4,
                                   .c = (char *)output,
                                   .c_stride = lanes * 4,
                                   .rows = d_v,
                                   .pairs = (end - begin) / 2,
                                   .columns = lanes};
    if (keys > 0)
        product_rows(&x, 0, d_v, FROM_C);
}

static void narrow(const float *p, const float *ds, int lanes, int64_t first, int64_t keys,
                   uint16_t *p_rows, uint16_t *ds_rows, uint32_t *ds_weights)
{
    round_panel(p, keys * lanes, p_rows);
    round_panel(ds, keys * lanes, ds_rows);
    pair_rows(ds_rows, lanes, keys, lanes, ds_weights + first / 2 * lanes);
    clear_around(ds_weights, lanes, first, keys);
}

static void add_rows(const uint16_t *a, int lanes, int64_t keys, const uint32_t *b,
                     int64_t b_stride, int64_t rows, float *c, int64_t c_stride, int64_t width)
{
    const struct tile_product x = {.a = (const char *)a,
                                   .a_stride = lanes * 2,
                                   .b = (const char *)b,
                                   .b_stride = b_stride * 4,
                                   .c = (char *)c,
                                   .c_stride = c_stride * 4,
                                   .rows = keys,
                                   .pairs = (rows + 1) / 2,
                                   .columns =
                                       (width + VECTOR_LANES - 1) / VECTOR_LANES * VECTOR_LANES};
    product_rows(&x, 0, keys, FROM_C);
}

const struct attn_dot_kernels attn_dot_kernels_amx = {
    .name = "AMX-BF16",
    .panel_vectors = 1, /* a panel of two, its scores, weights and a block of K and V pass L1 */
    .pack_queries = pack_queries,
    .scores = scores,
    .softmax = softmax,
    .pack_values = pack_values,
    .accumulate = accumulate,
    .release = release,
};

const struct attn_dot_gradient_kernels attn_dot_gradient_kernels_amx = {
    .narrow = narrow,
    .pair_rows = pair_rows,
    .add_rows = add_rows,
};
