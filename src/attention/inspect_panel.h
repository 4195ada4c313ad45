/* What is gathered of a panel of queries while the forward pass takes it through the keys, for
 * attn_inspect and attn_forward_inspect. */
#ifndef ATTN_ATTENTION_INSPECT_PANEL_H
#define ATTN_ATTENTION_INSPECT_PANEL_H

#include "attention/inspection.h"
#include "attention/scratch.h"
#include "attention/sequence.h"
#include "kernel/inspect_kernels.h"

struct attn_panel_inspection {
    float *t, *t_rest; /* [lanes]: beside l, see kernel/inspect_kernels.h */
    struct attn_top_lists top;
};

/* Memory for one panel of at most `lanes` queries, `vector_lanes` a vector. */
void attn_panel_inspection_take(struct attn_panel_inspection *panel,
                                const struct attn_inspected *inspected, int vector_lanes, int lanes,
                                struct attn_scratch *scratch);

/* The state of a panel of `rows` queries before the first key. */
void attn_panel_inspection_begin(const struct attn_panel_inspection *panel,
                                 const struct attn_inspected *inspected, int64_t rows, int lanes);

/* Rows query..query+rows−1 of a head behind their last key. */
struct attn_inspected_rows {
    const struct attn_sequence *sequence;
    int64_t head, query, rows;
    int lanes;
    const float *l, *l_rest; /* [lanes], as the keys have left them beside t */
    const float *stat_m;     /* [lanes]: what weights are made with */
    const float *stat_l;
};

/* Writes what is wanted of them. `scratch` is for [ATTN_TOP_LIMIT][lanes] floats. */
void attn_panel_inspection_write(const struct attn_kernels *kernels,
                                 const struct attn_panel_inspection *panel,
                                 const struct attn_inspected *inspected,
                                 const struct attn_inspected_rows *rows, float *scratch);

#endif
