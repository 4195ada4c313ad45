/* How a backward call is cut into independent items, and what memory each thread has for one.
 *
 * An item is a chunk of the keys of one sequence and key head: it gathers dK and dV of its keys
 * over all queries of the group's heads. The queries come in passes of a few panels, so that a
 * panel is in the cache while the blocks of keys go by. What the chunks of a sequence add to dQ
 * waits in memory and is summed in the order of chunks, so that no bit depends on the threads.
 *
 * A line is what has to be done one after another: one item, or those that add to the same numbers
 * of a bias' gradient. */
#ifndef ATTN_ATTENTION_BACKWARD_PLAN_H
#define ATTN_ATTENTION_BACKWARD_PLAN_H

#include "attention/backward_problem.h"
#include "attention/panel.h"

enum {
    ATTN_PASS_PANELS = 16, /* at most */
    ATTN_MAX_CHUNKS = 8    /* of a sequence */
};

struct attn_backward_plan {
    int lanes;                      /* of a full panel */
    bool dots;                      /* products are those of bf16 pairs */
    int64_t group;                  /* query heads a key head */
    int64_t parts;                  /* sequences, and the rows that belong to none */
    int64_t panels_a_pass;          /* at most */
    int64_t keys_a_chunk;           /* about */
    int64_t chunks;                 /* of a sequence, at most */
    int64_t chunk_rows;             /* keys of a chunk in whole blocks, at most */
    int64_t key_width, value_width; /* d_qk and d_v, filled up to whole cache lines of f32 */
    int64_t line_chunks, line_parts, line_heads; /* lines along each; 1 where all are in one */
    int64_t shared_bytes, bytes_a_thread;
};

/* The plan of the gradients that are wanted. False where sizes leave 64 bits. */
bool attn_backward_plan_make(struct attn_backward_plan *plan, const struct attn_context *context,
                             const struct attn_problem *problem,
                             const struct attn_backward_problem *backward);

int64_t attn_backward_lines(const struct attn_backward_plan *plan);

/* Rows of k and v that belong to a part, those behind its key length included. */
struct attn_key_span attn_backward_part_rows(const struct attn_problem *problem, int64_t part);

/* How many chunks a part has, at least 1; and the keys of one of them, which may be none. */
int64_t attn_backward_chunks(const struct attn_backward_plan *plan,
                             const struct attn_problem *problem, int64_t part);
struct attn_key_span attn_backward_chunk(const struct attn_sequence *sequence, int64_t chunk,
                                         int64_t chunks);

/* What all threads share. */
struct attn_backward_shared {
    struct attn_document_range *documents;
    float *d_q;   /* [chunks][B, H, Lq][d_qk], where a sequence may have more than one chunk */
    float *delta; /* [B, H, Lq], where the gradient of sinks is wanted */
};
void attn_backward_shared_take(struct attn_backward_shared *shared,
                               const struct attn_backward_plan *plan,
                               const struct attn_problem *problem,
                               const struct attn_backward_problem *backward,
                               struct attn_scratch *scratch);

/* Rows of q or d_o as add_rows reads them: f32, or bf16 in pairs of neighbours. */
struct attn_gradient_rows {
    const float *data;
    const uint32_t *pairs;
    int64_t stride;
    uint32_t broken; /* a bit for each row that is not finite and stands here as zeros */
    float *copy;     /* [lanes][width], where they go that are not read in place */
};

/* Whether add_rows may read the rows of a tensor where they are: whole vectors, one row behind the
 * other. (Rows far apart would meet in the cache, block after block.) */
bool attn_backward_in_place(const struct attn_kernels *kernels, const attn_tensor *tensor);

/* `rows` queries of one head on their way through the keys. */
struct attn_gradient_panel {
    int64_t head, query, rows;
    int lanes;
    struct attn_key_spans keys;
    float *queries, *d_o;         /* [d_qk], [d_v][lanes]; pairs where products are such */
    float *d_q;                   /* [d_qk][lanes], not yet scaled */
    float *m, *inverse_l, *delta; /* [lanes] */
    struct attn_gradient_rows query_rows, d_o_rows;
};

/* One thread's memory: this, and behind it what it points to. */
struct attn_backward_scratch {
    struct attn_gradient_panel panels[ATTN_PASS_PANELS];
    struct attn_tile_scratch tile;
    float *gradients;      /* [ATTN_KEY_BLOCK][lanes]: dP, then dS */
    float *factors;        /* [ATTN_KEY_BLOCK][lanes], of dropout */
    float *unused_maximum; /* [lanes] */
    float *row;            /* [max(d_qk, d_v)][lanes] */
    float *o, *d_o;        /* [d_v][lanes]; d_o where the panel's is in pairs */
    float *score_keys;     /* [ATTN_KEY_BLOCK][d_qk] */
    float *keys;           /* the same in f32 where score_keys are bf16 */
    float *clean_keys;     /* the same without what is not finite */
    float *values;         /* [ATTN_KEY_BLOCK][d_v] */
    float *d_k, *d_v;      /* [chunk_rows][key_width], [chunk_rows][value_width] */
    bool *finite;          /* [chunk_rows / ATTN_KEY_BLOCK]: all keys of a block are known to be */
    uint32_t *excluded;    /* [ATTN_KEY_BLOCK]: a bit for each lane */
    /* For products of bf16 pairs. */
    uint32_t *packed_keys;      /* [ATTN_KEY_BLOCK / 2][d_qk] */
    uint16_t *p_rows, *ds_rows; /* [ATTN_KEY_BLOCK][lanes] */
    uint32_t *ds_weights;       /* [ATTN_KEY_BLOCK / 2][lanes] */
    uint16_t *halves;           /* [lanes][max(key_width, value_width)] */
};
void attn_backward_scratch_take(const struct attn_backward_plan *plan,
                                const struct attn_problem *problem, struct attn_scratch *scratch);

#endif
