/* The blocks of matrix_kernels.h, each read as its definition says. */
#include "kernel/matrix_scalar.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/storage_scalar.h"

enum {
    BLOCK = 32, /* weights of a block of the small types, and of a K-block's part */
    PARTS = 8,  /* of a K-block */
    PIECE = 256 /* weights that are unpacked at once: whole blocks of every type */
};

static float half_at(const unsigned char *bytes)
{
    uint16_t half;
    float value;
    memcpy(&half, bytes, sizeof half);
    attn_widen_scalar(ATTN_STORAGE_F16, &half, 1.0f, 1, &value);
    return value;
}

static int low(unsigned char byte)
{
    return byte & 15;
}

static int high(unsigned char byte)
{
    return byte >> 4;
}

/* Weight n's number of the 16 bytes that hold 32 of them. */
static int nibble(const unsigned char *q, int n)
{
    return n < BLOCK / 2 ? low(q[n]) : high(q[n - BLOCK / 2]);
}

static int fifth_bit(const unsigned char *h, int n)
{
    return (h[n / 8] >> n % 8 & 1) << 4;
}

static void unpack_q8_0(const unsigned char *block, float *w)
{
    float d = half_at(block);
    for (int n = 0; n < BLOCK; n++)
        w[n] = d * (float)(int8_t)block[2 + n];
}

static void unpack_q4_0(const unsigned char *block, float *w)
{
    float d = half_at(block);
    for (int n = 0; n < BLOCK; n++)
        w[n] = d * (float)(nibble(block + 2, n) - 8);
}

static void unpack_q4_1(const unsigned char *block, float *w)
{
    float d = half_at(block), m = half_at(block + 2);
    for (int n = 0; n < BLOCK; n++)
        w[n] = d * (float)nibble(block + 4, n) + m;
}

static void unpack_q5_0(const unsigned char *block, float *w)
{
    float d = half_at(block);
    for (int n = 0; n < BLOCK; n++)
        w[n] = d * (float)((nibble(block + 6, n) | fifth_bit(block + 2, n)) - 16);
}

static void unpack_q5_1(const unsigned char *block, float *w)
{
    float d = half_at(block), m = half_at(block + 2);
    for (int n = 0; n < BLOCK; n++)
        w[n] = d * (float)(nibble(block + 8, n) | fifth_bit(block + 4, n)) + m;
}

/* Six bits of a scale and six of a minimum for each part, in 12 bytes: those of parts 0–3 are the
 * low bits of bytes 0–3 and 4–7; those of parts 4–7 have their low four bits in bytes 8–11, and
 * their upper two above the former. */
static void part_scale(const unsigned char scales[12], int part, float *scale, float *minimum)
{
    const unsigned char *upper = scales + part - 4;
    if (part < 4) {
        *scale = (float)(scales[part] & 63);
        *minimum = (float)(scales[part + 4] & 63);
    } else {
        *scale = (float)(low(scales[part + 4]) | upper[0] >> 6 << 4);
        *minimum = (float)(high(scales[part + 4]) | upper[4] >> 6 << 4);
    }
}

/* Parts 2·i and 2·i + 1 are the low and high halves of bytes 32·i to 32·i + 31 of q. `fifth` holds
 * 32 bytes, bit `part` of byte n for weight n of a part; or it is NULL. */
static void unpack_parts(const unsigned char *block, const unsigned char *fifth,
                         const unsigned char *q, float *w)
{
    float d = half_at(block), dmin = half_at(block + 2);
    for (int part = 0; part < PARTS; part++) {
        float scale, minimum;
        part_scale(block + 4, part, &scale, &minimum);
        for (int n = 0; n < BLOCK; n++) {
            unsigned char byte = q[part / 2 * BLOCK + n];
            int number = part % 2 == 0 ? low(byte) : high(byte);
            if (fifth)
                number |= (fifth[n] >> part & 1) << 4;
            w[part * BLOCK + n] = d * scale * (float)number - dmin * minimum;
        }
    }
}

static void unpack_q4_k(const unsigned char *block, float *w)
{
    unpack_parts(block, NULL, block + 16, w);
}

static void unpack_q5_k(const unsigned char *block, float *w)
{
    unpack_parts(block, block + 16, block + 48, w);
}

/* Each half of 128 weights has 64 bytes of low and 32 bytes of upper bits: its quarters are the low
 * halves of the first 32 bytes, those of the last, and the high halves of both. A scale goes with
 * 16 weights. */
static void unpack_q6_k(const unsigned char *block, float *w)
{
    const unsigned char *scales = block + 192;
    float d = half_at(block + 208);
    for (int part = 0; part < PARTS; part++) {
        int half = part / 4, quarter = part % 4;
        const unsigned char *q = block + half * 64 + quarter % 2 * BLOCK;
        const unsigned char *upper = block + 128 + half * BLOCK;
        for (int n = 0; n < BLOCK; n++) {
            int number = quarter < 2 ? low(q[n]) : high(q[n]);
            number |= (upper[n] >> 2 * quarter & 3) << 4;
            float scale = (float)(int8_t)scales[2 * part + n / 16];
            w[part * BLOCK + n] = d * scale * (float)(number - 32);
        }
    }
}

typedef void unpack_block_function(const unsigned char *block, float *w);

static unpack_block_function *const unpack_block[ATTN_MATRIX_TYPES] = {
    [ATTN_MATRIX_Q8_0] = unpack_q8_0, [ATTN_MATRIX_Q4_0] = unpack_q4_0,
    [ATTN_MATRIX_Q4_1] = unpack_q4_1, [ATTN_MATRIX_Q5_0] = unpack_q5_0,
    [ATTN_MATRIX_Q5_1] = unpack_q5_1, [ATTN_MATRIX_Q4_K] = unpack_q4_k,
    [ATTN_MATRIX_Q5_K] = unpack_q5_k, [ATTN_MATRIX_Q6_K] = unpack_q6_k,
};

/* Rows have any alignment. */
static void unpack_halves(enum attn_storage storage, const unsigned char *bytes, int64_t count,
                          float *values)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + i * (int64_t)sizeof half, sizeof half);
        attn_widen_scalar(storage, &half, 1.0f, 1, values + i);
    }
}

static void unpack(enum attn_matrix_type type, const void *row, int64_t begin, int64_t count,
                   float *values)
{
    if (count <= 0)
        return;
    const int64_t block = attn_matrix_block(type), bytes = attn_matrix_block_bytes(type);
    const unsigned char *from = (const unsigned char *)row + begin / block * bytes;
    switch (type) {
    case ATTN_MATRIX_F32:
        memcpy(values, from, (size_t)count * sizeof *values);
        return;
    case ATTN_MATRIX_F16:
        unpack_halves(ATTN_STORAGE_F16, from, count, values);
        return;
    case ATTN_MATRIX_BF16:
        unpack_halves(ATTN_STORAGE_BF16, from, count, values);
        return;
    default:
        for (int64_t done = 0; done < count; done += block, from += bytes)
            unpack_block[type](from, values + done);
        return;
    }
}

static void unpack_bf16(enum attn_matrix_type type, const void *row, int64_t begin, int64_t count,
                        uint16_t *values)
{
    for (int64_t done = 0; done < count; done += PIECE) {
        float piece[PIECE];
        int64_t weights = count - done < PIECE ? count - done : PIECE;
        unpack(type, row, begin + done, weights, piece);
        attn_narrow_scalar(ATTN_STORAGE_BF16, piece, weights, values + done);
    }
}

static int64_t vector_bytes(enum attn_matrix_type type, int64_t width)
{
    (void)type;
    int64_t bytes = width * (int64_t)sizeof(float);
    return (bytes + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
}

static void pack_vector(enum attn_matrix_type type, const float *x, int64_t width, void *packed)
{
    (void)type;
    if (width > 0)
        memcpy(packed, x, (size_t)width * sizeof *x);
}

static void multiply(enum attn_matrix_type type, const void *weights, int64_t rows, int64_t width,
                     const void *packed, int64_t count, float *y, int64_t y_stride)
{
    const int64_t row_bytes = attn_matrix_row_bytes(type, width);
    const int64_t apart = vector_bytes(type, width) / (int64_t)sizeof(float);
    for (int64_t r = 0; r < rows; r++) {
        const unsigned char *row = (const unsigned char *)weights + r * row_bytes;
        float sum[ATTN_MATRIX_VECTORS] = {0}, piece[PIECE];
        for (int64_t c = 0; c < width; c += PIECE) {
            int64_t elements = width - c < PIECE ? width - c : PIECE;
            unpack(type, row, c, elements, piece);
            for (int64_t i = 0; i < count; i++)
                for (int64_t e = 0; e < elements; e++)
                    sum[i] += piece[e] * ((const float *)packed)[i * apart + c + e];
        }
        for (int64_t i = 0; i < count; i++)
            y[i * y_stride + r] = sum[i];
    }
}

const struct attn_matrix_kernels attn_matrix_kernels_scalar = {
    .vector_bytes = vector_bytes,
    .pack_vector = pack_vector,
    .multiply = multiply,
    .unpack = unpack,
    .unpack_bf16 = unpack_bf16,
};
