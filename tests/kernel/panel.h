/* Panels of one vector and of two, filled at random, and the views of rows that they are packed
 * from and unpacked to. */
#ifndef ATTN_TESTS_PANEL_H
#define ATTN_TESTS_PANEL_H

#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/kernel.h"

typedef void panel_body(const struct attn_kernels *kernels, int lanes);

/* Runs body as isa_each does, for panels of one vector and of two in the same test. */
void panel_each(const char *name, panel_body *body);

/* Runs body for every ISA, for what needs no panel or all kinds of them. */
void kernels_each(const char *name, void (*body)(const struct attn_kernels *kernels));

/* Runs body as dots_each does, for both panels. */
void dot_panel_each(const char *name, panel_body *body);

/* A panel of kernel/kernel.h with `count` numbers in −2..2, or all of one value; guarded memory of
 * the test. */
float *random_panel(struct random_source *source, int64_t count, enum guard_side side);
float *filled_panel(size_t count, float value);

/* A copy of [rows][lanes]; of a panel of two vectors the half 0 or 1 as a panel of one. */
float *panel_copy(const float *panel, int64_t rows, int lanes);
float *panel_half(const float *panel, int64_t rows, int lanes, int half);

/* The panel of one vector has the bits of a half of the panel [rows][lanes] of two. */
#define CHECK_SAME_HALF(one, two, rows, lanes, half)                                               \
    check_same_half(__FILE__, __LINE__, #one, one, two, rows, lanes, half)
void check_same_half(const char *file, int line, const char *what, const float *one,
                     const float *two, int64_t rows, int lanes, int half);

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

typedef void row_view_body(const struct attn_kernels *kernels, int lanes,
                           const struct row_view *view, int64_t rows, int64_t d,
                           enum guard_side side);

/* Calls body for the first `view_count` views, with no row, a few and one in every lane, with each
 * number of elements in `dims`, at each side's guard page. Releases all guarded buffers on the way.
 */
void each_row_view(const struct attn_kernels *kernels, int lanes, size_t view_count,
                   const int64_t *dims, size_t dim_count, row_view_body *body);

#endif
