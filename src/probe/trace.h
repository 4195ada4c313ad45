/* Which earlier words each written word looked at: attention collected while a text is written. */
#ifndef ATTN_PROBE_TRACE_H
#define ATTN_PROBE_TRACE_H

#include "model/causal_model.h"

/* Collects, for every position from `first` on that is read, each layer's mean over its heads:
 * layers · (positions · length) numbers. Set its observer on the generation; it is for one text. */
struct trace;

bool trace_create(struct trace **trace, const struct causal_settings *settings, int64_t first,
                  struct attn_error *error);
void trace_destroy(struct trace *trace);                   /* NULL is allowed */
struct model_observer trace_observer(struct trace *trace); /* lives as long as the trace */

/* Positions that were read, those before `first` too. */
int64_t trace_tokens(const struct trace *trace);

enum { TRACE_MEAN = -1 }; /* in place of a layer: the mean over all */

/* weights[position + 1]: what a position gave to itself and to those before it; they sum to 1.
 * first ≤ position < trace_tokens. */
void trace_row(const struct trace *trace, int64_t layer, int64_t position, float *weights);

/* merged[rows][columns]: the weights by word. row_of[position] and column_of[position] are where
 * each of the trace_tokens positions belongs, or −1 for nowhere (as row all before `first`); what
 * falls into one row is averaged, what falls into one column summed. Fails without memory. */
bool trace_merge(const struct trace *trace, int64_t layer, const int32_t *row_of, size_t rows,
                 const int32_t *column_of, size_t columns, float *merged, struct attn_error *error);

#endif
