/* Rows of K and V as kernels read them: f32, elements side by side. */
#ifndef ATTN_ATTENTION_ROWS_H
#define ATTN_ATTENTION_ROWS_H

#include "attention/sequence.h"

struct attn_rows {
    const float *data;
    const uint16_t *halves; /* instead of data: bf16 as it is stored, for dot_kernels.h */
    int64_t stride;         /* in elements */
};

static inline struct attn_rows attn_rows_from(struct attn_rows rows, int64_t first)
{
    if (rows.halves)
        rows.halves += first * rows.stride;
    else
        rows.data += first * rows.stride;
    return rows;
}

/* Keys (or values) first..first+count−1 of a sequence and key head, count ≤ ATTN_KEY_BLOCK: where
 * they are if they are f32 with elements side by side in one page, else converted or copied to
 * scratch[count][dim]. Where products are those of bf16 pairs, rows stay bf16; copies have an even
 * width, and such are made of keys of an odd one. */
struct attn_rows attn_key_rows(const struct attn_kernels *kernels,
                               const struct attn_problem *problem,
                               const struct attn_sequence *sequence, int64_t key_head,
                               int64_t first, int64_t count, float *scratch);
struct attn_rows attn_value_rows(const struct attn_kernels *kernels,
                                 const struct attn_problem *problem,
                                 const struct attn_sequence *sequence, int64_t key_head,
                                 int64_t first, int64_t count, float *scratch);

/* Asks the memory for rows first..first+count−1 of K and V, as far as they lie side by side. */
void attn_rows_prefetch(const struct attn_problem *problem, const struct attn_sequence *sequence,
                        int64_t key_head, int64_t first, int64_t count);

/* Whether those have to be converted or copied, and so need scratch. */
bool attn_rows_need_scratch(const struct attn_problem *problem, const attn_tensor *tensor);

/* Rows row..row+rows−1 of index batch and head of a tensor of floats, as f32, into
 * panel[dim][lanes]; `scratch` is for dim · lanes floats, used where the tensor is not f32. And the
 * first `rows` lanes of panel[dim][lanes] into such rows. */
void attn_pack_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                    int64_t head, int64_t row, int64_t rows, int lanes, float *scratch,
                    float *panel);
void attn_unpack_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                      int64_t head, int64_t row, int64_t rows, int lanes, float *scratch,
                      const float *panel);

/* The same rows from and to numbers of f32 side by side, `stride` of them from row to row. */
void attn_read_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                    int64_t head, int64_t row, int64_t rows, float *numbers, int64_t stride);
void attn_write_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                     int64_t head, int64_t row, int64_t rows, const float *numbers, int64_t stride);

/* The same rows of bf16 to halves[rows][width], each followed by zeros up to `width`. */
void attn_read_halves(const attn_tensor *tensor, int64_t batch, int64_t head, int64_t row,
                      int64_t rows, int64_t width, uint16_t *halves);

/* Queries first..first+rows−1 of a head into panel[d_qk][lanes], as pairs where products are those
 * of bf16 pairs; `row` is scratch for d_qk · lanes floats, used where q is not f32. */
void attn_pack_queries(const struct attn_kernels *kernels, const struct attn_problem *problem,
                       const struct attn_sequence *sequence, int64_t head, int64_t first,
                       int64_t rows, int lanes, float *row, float *panel);

/* Whether the elements of a row lie side by side. */
bool attn_elements_adjoin(const attn_tensor *tensor);

/* A run of rows as they are stored, for decode: rows first..first+count−1 where no page stands
 * between them. *count comes in as what is wanted, at most the keys that are left, and leaves as
 * what there is in one run: 0 where the elements of a row lie apart, which attn_key_rows and
 * attn_value_rows copy. `scales` is looked at where the tensor is i8 only. */
struct attn_stored_rows;
struct attn_stored_rows attn_stored_run(const struct attn_problem *problem,
                                        const attn_tensor *tensor, const attn_tensor *scales,
                                        const struct attn_sequence *sequence, int64_t key_head,
                                        int64_t first, int64_t *count);

/* The storage of a type; the type is one of ATTN_TYPES_ROWS. */
enum attn_storage attn_storage_of(attn_type type);

#endif
