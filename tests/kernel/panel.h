/* Panels of random numbers, and the views of rows that panels are packed from and unpacked to. */
#ifndef ATTN_TESTS_PANEL_H
#define ATTN_TESTS_PANEL_H

#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/kernel.h"

/* A panel of kernel/kernel.h with numbers in −2..2; guarded memory of the test. */
float *random_panel(struct random_source *source, int64_t count, enum guard_side side);

/* Rows in a memory of `span` floats: element c of row n is number first + n·row_stride +
 * c·dim_stride. */
struct row_view {
    const char *name;
    int64_t row_stride, dim_stride, first, span;
};

enum {
    DISTINCT_ROW_VIEWS = 5, /* how many give each element a place of its own: these come first */
    ROW_VIEWS = 7           /* how many there are */
};

typedef void row_view_body(const struct attn_kernels *kernels, const struct row_view *view,
                           int64_t rows, int64_t d, enum guard_side side);

/* Calls body for the first `view_count` views, with no row, a few and one in every lane, with each
 * number of elements in `dims`, at each side's guard page. Releases all guarded buffers on the way.
 */
void each_row_view(const struct attn_kernels *kernels, size_t view_count, const int64_t *dims,
                   size_t dim_count, row_view_body *body);

#endif
