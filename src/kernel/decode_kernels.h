/* The kernels of decode: a row of K or V meets up to four queries of its group at once, lanes are
 * elements of the row. Memory is the limit there, so rows are read as they are stored, once for all
 * four, and never copied to f32.
 *
 * One core gets the whole bandwidth only while several streams of lines are under way, each from
 * neighbour to neighbour. So a block is not read from its begin to its end: scores walk through
 * equal parts of it side by side, and so do values; and while some rows are worked on those that
 * come next are asked for, a line at a time, for what is asked for in one go is dropped.
 *
 * A query (and an output) of width d is held as attn_decode_width(d) floats, in an order of the
 * kernels' own that suits the storage (16-bit rows are split into even and odd elements), padded
 * with zeros. Up to ATTN_DECODE_QUERIES of them stand one behind the other, and the score of query
 * i with key j is s[j·attn_decode_stride(count) + i]. Buffers of queries, outputs and scores are
 * aligned to ATTN_ALIGNMENT. */
#ifndef ATTN_KERNEL_DECODE_KERNELS_H
#define ATTN_KERNEL_DECODE_KERNELS_H

#include "base/memory.h"
#include "kernel/kernel.h"

enum {
    ATTN_DECODE_QUERIES = 4, /* that share one pass over a row */
    ATTN_DECODE_BLOCK = 768, /* keys whose scores are held at once; a multiple of ATTN_KEY_BLOCK */
    ATTN_DECODE_STREAMS = 4, /* parts of a block of values that are read side by side */
    ATTN_DECODE_UNIT = 16    /* softmax takes keys in such steps */
};

/* Floats that hold a row of d elements: whole steps of the widest ISA. */
static inline int64_t attn_decode_width(int64_t d)
{
    return (d + 31) / 32 * 32;
}

/* Floats from the scores of one key to those of the next, where `count` queries have some. */
static inline int64_t attn_decode_stride(int64_t count)
{
    return count > 2 ? 4 : count;
}

/* Rows of one tensor, elements side by side: row j at table[j], or at data + j·stride. */
struct attn_stored_rows {
    const void *data;
    int64_t stride;           /* bytes between rows; where there is a table, mostly so */
    const void *const *table; /* NULL: none */
    const float *scales;      /* i8: one a row, scale_stride floats apart; else NULL */
    int64_t scale_stride;
};

/* For one storage. */
struct attn_decode_storage {
    /* row[] = x[c·dim_stride], c < d, in the kernels' order, zeros behind. */
    void (*pack)(const float *x, int64_t dim_stride, int64_t d, float *row);
    /* The reverse: x[c·dim_stride] = row[]. */
    void (*unpack)(const float *row, int64_t d, float *x, int64_t dim_stride);

    /* The score of each query i < count ≤ ATTN_DECODE_QUERIES with each key j < keys:
     * scale · q_i·k_j. The order of a sum depends on d alone. */
    void (*scores)(const float *queries, int64_t count, int64_t d, const struct attn_stored_rows *k,
                   int64_t keys, float scale, float *s);

    /* output_i[c] += Σ_j s_ij · v_j[c] over begin ≤ j < end ≤ ATTN_DECODE_BLOCK, summed in an order
     * of j that depends on j alone. With `skips`, rows are left out whose weights are all −0. Of
     * i8 the weights s are multiplied by their rows' scales on the way. */
    void (*blend)(float *s, int64_t count, int64_t begin, int64_t end, bool skips,
                  const struct attn_stored_rows *v, int64_t d, float *outputs);
};

struct attn_decode_kernels {
    struct attn_decode_storage storage[ATTN_STORAGE_COUNT];

    /* Online softmax of `count` queries over `keys` ≤ ATTN_DECODE_BLOCK scores: m[i] rises to their
     * maximum, l[i] and output_i[width] are multiplied by exp(m_old − m), s = exp(s − m), −0 where
     * s was −inf, and l[i] += Σ s. m starts from −inf, l from 0. A NaN or +inf among the scores
     * makes l NaN. Scores behind the last key are written up to a multiple of ATTN_DECODE_UNIT.
     * False only where no score was −inf. Which sum a score falls into depends on j mod
     * ATTN_DECODE_UNIT.
     */
    bool (*softmax)(float *s, int64_t count, int64_t keys, float *m, float *l, float *outputs,
                    int64_t width);

    /* One query's state m, l and output[width] takes the keys of another one in. */
    void (*merge)(float *m, float *l, float *output, float part_m, float part_l, const float *part,
                  int64_t width);

    /* output = output / l, 0 where l = 0. */
    void (*finish)(float *output, float l, int64_t width);

    /* Whether row[0..width−1] are finite numbers. */
    bool (*is_finite)(const float *row, int64_t width);
};

#endif
