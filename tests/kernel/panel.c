#include "panel.h"

#include <string.h>

#include "harness/compare.h"
#include "harness/dots.h"
#include "harness/isa.h"
#include "harness/test.h"

/* What isa_each's body is to call: one of the two. */
static panel_body *body_of_panels;
static void (*body_of_kernels)(const struct attn_kernels *kernels);

static void visit_both_panels(const struct attn_kernels *kernels)
{
    body_of_panels(kernels, kernels->vector_lanes);
    body_of_panels(kernels, 2 * kernels->vector_lanes);
}

static void visit_kernels(attn_isa isa)
{
    const struct attn_kernels *kernels = attn_kernels_for(isa);
    if (body_of_kernels)
        body_of_kernels(kernels);
    else
        visit_both_panels(kernels);
}

void panel_each(const char *name, panel_body *body)
{
    body_of_kernels = NULL;
    body_of_panels = body;
    isa_each(name, visit_kernels);
}

void kernels_each(const char *name, void (*body)(const struct attn_kernels *kernels))
{
    body_of_kernels = body;
    isa_each(name, visit_kernels);
}

void dot_panel_each(const char *name, panel_body *body)
{
    body_of_kernels = NULL;
    body_of_panels = body;
    dots_each(name, visit_both_panels);
}

float *random_panel(struct random_source *source, int64_t count, enum guard_side side)
{
    float *panel = guarded_panel((size_t)count, side);
    random_floats(source, -2, 2, panel, (size_t)count);
    return panel;
}

float *filled_panel(size_t count, float value)
{
    float *panel = guarded_panel(count, GUARD_BEHIND);
    for (size_t i = 0; i < count; i++)
        panel[i] = value;
    return panel;
}

float *panel_copy(const float *panel, int64_t rows, int lanes)
{
    size_t count = (size_t)(rows * lanes);
    float *copy = guarded_panel(count, GUARD_BEHIND);
    memcpy(copy, panel, count * sizeof *copy);
    return copy;
}

float *panel_half(const float *panel, int64_t rows, int lanes, int half)
{
    int vector = lanes / 2;
    float *one = guarded_panel((size_t)(rows * vector), GUARD_BEHIND);
    for (int64_t row = 0; row < rows; row++)
        memcpy(one + row * vector, panel + row * lanes + half * vector,
               (size_t)vector * sizeof *one);
    return one;
}

void check_same_half(const char *file, int line, const char *what, const float *one,
                     const float *two, int64_t rows, int lanes, int half)
{
    compare_bits(file, line, what, one, panel_half(two, rows, lanes, half),
                 (size_t)(rows * (lanes / 2)));
}

static void visit_views(const struct attn_kernels *kernels, int lanes, size_t view_count,
                        int64_t rows, int64_t d, row_view_body *body)
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
            body(kernels, lanes, &views[n], rows, d, side);
}

void each_row_view(const struct attn_kernels *kernels, int lanes, size_t view_count,
                   const int64_t *dims, size_t dim_count, row_view_body *body)
{
    const int64_t row_counts[] = {0, 1, 2, lanes / 2, lanes - 1, lanes};
    for (size_t a = 0; a < COUNT(row_counts); a++) {
        for (size_t b = 0; b < dim_count; b++) {
            visit_views(kernels, lanes, view_count, row_counts[a], dims[b], body);
            guarded_release_all();
        }
    }
}
