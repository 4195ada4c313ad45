#include "panel.h"

#include "harness/test.h"

float *random_panel(struct random_source *source, int64_t count, enum guard_side side)
{
    float *panel = guarded_panel((size_t)count, side);
    random_floats(source, -2, 2, panel, (size_t)count);
    return panel;
}

static void visit_views(const struct attn_kernels *kernels, size_t view_count, int64_t rows,
                        int64_t d, row_view_body *body)
{
    int64_t some = rows * d > 0;
    const struct row_view views[ROW_VIEWS] = {
        {"packed", d, 1, 0, rows * d},
        {"misaligned with gaps", d + 3, 1, some, some ? rows * (d + 3) - 3 + 1 : 0},
        {"transposed", 1, rows, 0, rows * d},
        {"rows reversed", -d, 1, some ? (rows - 1) * d : 0, rows * d},
        {"spread", 3 * d, 3, 0, some ? 3 * (rows * d - 1) + 1 : 0},
        {"one row for all", 0, 1, 0, some ? d : 0},
        {"one element for all", 0, 0, 0, some},
    };
    for (size_t n = 0; n < view_count; n++)
        for (enum guard_side side = GUARD_BEHIND; side <= GUARD_BEFORE; side++)
            body(kernels, &views[n], rows, d, side);
}

void each_row_view(const struct attn_kernels *kernels, size_t view_count, const int64_t *dims,
                   size_t dim_count, row_view_body *body)
{
    const int64_t row_counts[] = {0, 1, 2, kernels->lanes / 2, kernels->lanes - 1, kernels->lanes};
    for (size_t a = 0; a < COUNT(row_counts); a++) {
        for (size_t b = 0; b < dim_count; b++) {
            visit_views(kernels, view_count, row_counts[a], dims[b], body);
            guarded_release_all();
        }
    }
}
