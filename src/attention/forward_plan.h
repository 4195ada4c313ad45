/* How a forward call is cut into independent items, and what memory each thread has for one.
 *
 * An item is a run of panels that share a key head: all query heads of its group, so that a block
 * of K and V is read once for all of them while it is in the cache. No row's bits depend on the
 * cut. */
#ifndef ATTN_ATTENTION_FORWARD_PLAN_H
#define ATTN_ATTENTION_FORWARD_PLAN_H

#include "attention/inspect_panel.h"
#include "attention/panel.h"

enum {
    ATTN_ITEM_PANELS = 32 /* at most, of one vector, or 16 of two: more do not pay, K and V then
                           * come from L1 and L2 enough */
};

struct attn_forward_plan {
    const struct attn_inspected *inspected; /* on the way, or NULL */
    int vector_lanes;
    int lanes;              /* of a full panel */
    int64_t group;          /* query heads a key head */
    int64_t panels_an_item; /* at most */
    int64_t items;
    int64_t parts;        /* sequences, and the rows that belong to none */
    int64_t *part_items;  /* [parts + 1]: the items before each part, where sequences are packed */
    int64_t items_a_part; /* else */
    int64_t shared_bytes, bytes_a_thread;
};

/* False where the sizes leave 64 bits. part_items is not set yet. */
bool attn_forward_plan_make(struct attn_forward_plan *plan, const struct attn_context *context,
                            const struct attn_problem *problem,
                            const struct attn_inspected *inspected);

/* Lays the shared part of the workspace out: fills part_items, and problem->document_blocks. */
void attn_forward_plan_share(struct attn_forward_plan *plan, struct attn_problem *problem,
                             void *memory);

/* What an item is: `panels` panels of a key head of one part, from the `first` on. Panel p of a
 * part is that of head p mod group and of queries p / group · lanes on. */
struct attn_forward_item {
    struct attn_sequence sequence;
    int64_t key_head, first, panels;
};
struct attn_forward_item attn_forward_item_at(const struct attn_forward_plan *plan,
                                              const struct attn_problem *problem, int64_t item);

/* `rows` queries of one head on their way through the keys. */
struct attn_panel {
    int64_t head, query, rows;
    int lanes;
    struct attn_key_spans keys;
    float *queries;        /* [d_qk][lanes] */
    float *output;         /* [d_v][lanes] */
    float *m, *l, *l_rest; /* [lanes] */
    struct attn_panel_inspection inspection;
};

/* One thread's memory: this, and behind it what it points to. */
struct attn_forward_scratch {
    struct attn_panel panels[ATTN_ITEM_PANELS];
    struct attn_panel careful; /* queries are borrowed */
    struct attn_tile_scratch tile;
    float *m_new;        /* [lanes] */
    float *row;          /* [max(d_qk, d_v)][lanes], for packing other types than f32 */
    float *keys;         /* [ATTN_KEY_BLOCK][d_qk] */
    float *values;       /* [ATTN_KEY_BLOCK][d_v] */
    float *clean_values; /* [ATTN_KEY_BLOCK][d_v] */
    float *factors;      /* [ATTN_KEY_BLOCK][lanes], of dropout */
    /* For products of bf16 pairs. */
    uint32_t *packed_values, *clean_packed; /* [ATTN_KEY_BLOCK / 2][d_v] */
    uint32_t *weight_pairs;                 /* [ATTN_KEY_BLOCK / 2][lanes] */
};
void attn_forward_scratch_take(const struct attn_forward_plan *plan,
                               const struct attn_problem *problem, struct attn_scratch *scratch);

#endif
