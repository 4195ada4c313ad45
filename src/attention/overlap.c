#include "attention/overlap.h"

#include <stdlib.h>

#include "attention/tensor_extent.h"

/* Two views meet where Σ stride_a·i − Σ stride_b·j equals the distance of their first elements for
 * some indices. That is one linear equation in bounded whole numbers; it is solved by depth-first
 * search, largest coefficient first. For the nested strides that tensors have, what the smaller
 * terms can still reach leaves one or two candidates at each level. */

enum { MAX_TERMS = 9 }; /* two tensors of four axes, and the bytes within an element */

/* coefficient·x with x in low..high; coefficients are positive and different. */
struct term {
    int64_t coefficient, low, high;
};

struct equation {
    struct term terms[MAX_TERMS];
    int count;
    int steps; /* what is left of the search's budget */
};

/* The search gives up after this many steps and then says "they meet": only strides that no layout
 * has (many nearly equal ones) come near. */
enum { SEARCH_BUDGET = 100000 };

static void add_term(struct equation *equation, int64_t coefficient, int64_t low, int64_t high)
{
    if (coefficient < 0) {
        int64_t old_low = low;
        coefficient = -coefficient;
        low = -high;
        high = -old_low;
    }
    if (coefficient == 0 || (low == 0 && high == 0))
        return;
    for (int i = 0; i < equation->count; i++)
        if (equation->terms[i].coefficient == coefficient) {
            equation->terms[i].low += low;
            equation->terms[i].high += high;
            return;
        }
    equation->terms[equation->count++] = (struct term){coefficient, low, high};
}

static int by_falling_coefficient(const void *a, const void *b)
{
    int64_t x = ((const struct term *)a)->coefficient, y = ((const struct term *)b)->coefficient;
    return (x < y) - (x > y);
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Whether terms from `index` on can sum to `target`. With `other_than_zero`, x = 0 for all of them
 * does not count. Depth is at most MAX_TERMS. */
static bool reachable(struct equation *equation, int index, int64_t target, bool other_than_zero)
{
    if (--equation->steps < 0)
        return true;
    if (index == equation->count)
        return target == 0 && !other_than_zero;
    int64_t rest_low = 0, rest_high = 0;
    for (int i = index + 1; i < equation->count; i++) {
        rest_low += equation->terms[i].coefficient * equation->terms[i].low;
        rest_high += equation->terms[i].coefficient * equation->terms[i].high;
    }
    struct term term = equation->terms[index];
    int64_t low = -floor_divide(rest_high - target, term.coefficient);
    int64_t high = floor_divide(target - rest_low, term.coefficient);
    low = low < term.low ? term.low : low;
    high = high > term.high ? term.high : high;
    for (int64_t x = low; x <= high; x++)
        if (reachable(equation, index + 1, target - term.coefficient * x,
                      other_than_zero && x == 0))
            return true;
    return false;
}

static bool solve(struct equation *equation, int64_t target, bool other_than_zero)
{
    qsort(equation->terms, (size_t)equation->count, sizeof equation->terms[0],
          by_falling_coefficient);
    equation->steps = SEARCH_BUDGET;
    return reachable(equation, 0, target, other_than_zero);
}

bool attn_addresses_twice(const attn_tensor *tensor)
{
    if (attn_is_empty(tensor))
        return false;
    struct equation equation = {.count = 0};
    for (int axis = 0; axis < 4; axis++) {
        int64_t last = tensor->shape[axis] - 1;
        if (last == 0)
            continue;
        if (tensor->stride[axis] == 0)
            return true;
        int before = equation.count;
        add_term(&equation, tensor->stride[axis], -last, last);
        if (equation.count == before)
            return true; /* another axis has the same stride */
    }
    return solve(&equation, 0, true);
}

bool attn_overlap(const attn_tensor *a, const attn_tensor *b)
{
    if (attn_is_empty(a) || attn_is_empty(b))
        return false;
    struct attn_extent extent_a = attn_tensor_extent(a), extent_b = attn_tensor_extent(b);
    if (extent_a.end <= extent_b.begin || extent_b.end <= extent_a.begin)
        return false;

    /* In bytes from a's first element; elements meet where the distance is within their sizes. */
    int64_t size_a = attn_type_size(a->type), size_b = attn_type_size(b->type);
    struct equation equation = {.count = 0};
    for (int axis = 0; axis < 4; axis++) {
        /* The stride of an axis of size 1 leads nowhere and may be any number. */
        if (a->shape[axis] > 1)
            add_term(&equation, a->stride[axis] * size_a, 0, a->shape[axis] - 1);
        if (b->shape[axis] > 1)
            add_term(&equation, -b->stride[axis] * size_b, 0, b->shape[axis] - 1);
    }
    int64_t distance = (int64_t)((uintptr_t)b->data - (uintptr_t)a->data);
    if (size_a == size_b && distance % size_a == 0) {
        /* Whole elements apart: a byte's play would only widen the search. */
        return solve(&equation, distance, false);
    }
    add_term(&equation, 1, -(size_b - 1), size_a - 1);
    return solve(&equation, distance, false);
}
