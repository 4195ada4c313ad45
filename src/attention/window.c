#include "attention/window.h"

static int64_t clamp(int64_t key, int64_t keys)
{
    return key < 0 ? 0 : key > keys ? keys : key;
}

int64_t attn_window_begin(const struct attn_problem *problem, const struct attn_sequence *sequence,
                          int64_t row)
{
    if (problem->reach_left == ATTN_WINDOW_OPEN)
        return 0;
    int64_t position = attn_position_add(row, sequence->offset);
    return clamp(attn_position_add(position, -problem->reach_left), sequence->keys);
}

int64_t attn_window_end(const struct attn_problem *problem, const struct attn_sequence *sequence,
                        int64_t row)
{
    if (problem->reach_right == ATTN_WINDOW_OPEN)
        return sequence->keys;
    if (problem->reach_right < -problem->reach_left)
        return 0; /* a window without a key */
    int64_t position = attn_position_add(row, sequence->offset);
    return clamp(attn_position_add(position, problem->reach_right + 1), sequence->keys);
}

struct attn_key_span attn_called_range(const struct attn_problem *problem,
                                       const struct attn_sequence *sequence, int64_t head,
                                       int64_t first, int64_t rows)
{
    struct attn_key_span range = {0, sequence->keys};
    if (!problem->key_range)
        return range;
    problem->key_range(problem->callback_user, sequence->index, head, first, rows, &range.begin,
                       &range.end);
    range.begin = clamp(range.begin, sequence->keys);
    range.end = clamp(range.end, sequence->keys);
    if (range.end < range.begin)
        range.end = range.begin;
    return range;
}
