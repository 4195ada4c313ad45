#include "attention/panel.h"

#include <string.h>

#include "kernel/dot_kernels.h"

void attn_tile_scratch_take(struct attn_tile_scratch *tile, const struct attn_problem *problem,
                            struct attn_scratch *scratch)
{
    tile->scores = attn_scratch_floats(scratch, ATTN_KEY_BLOCK, ATTN_MAX_LANES);
    tile->edit = (struct attn_edit_scratch){
        .bias = attn_scratch_floats(scratch, attn_scores_need_edit(problem) ? ATTN_KEY_BLOCK : 0,
                                    ATTN_MAX_LANES)};
    tile->before = attn_scratch_floats(scratch, 1, ATTN_MAX_LANES);
    tile->exclusions = attn_scratch_take(scratch, 1, 1, (int64_t)sizeof(struct attn_exclusions));
}

bool attn_tile_scores(const struct attn_kernels *kernels, const struct attn_problem *problem,
                      const struct attn_tile *tile, const float *queries, struct attn_rows keys,
                      const struct attn_tile_scratch *scratch, float *m)
{
    attn_tile_exclusions(kernels, problem, tile, scratch->exclusions);
    if (scratch->exclusions->kind == ATTN_EXCLUDES_ALL)
        return false;

    bool edited = scratch->exclusions->kind == ATTN_EXCLUDES_SOME || attn_scores_need_edit(problem);
    size_t lanes_size = (size_t)tile->lanes * sizeof(float);
    if (edited)
        memcpy(scratch->before, m, lanes_size);
    if (problem->precision == ATTN_PRECISION_BF16)
        kernels->dots->scores((const uint32_t *)(const void *)queries, tile->lanes, problem->d_qk,
                              keys.halves, keys.stride, tile->keys, problem->scale, scratch->scores,
                              m);
    else
        kernels->scores(queries, tile->lanes, problem->d_qk, keys.data, keys.stride, tile->keys,
                        problem->scale, scratch->scores, m);
    if (edited) {
        attn_edit_scores(kernels, problem, tile, scratch->exclusions, &scratch->edit,
                         scratch->scores);
        memcpy(m, scratch->before, lanes_size);
        kernels->raise_maximum(scratch->scores, tile->lanes, tile->keys, m);
    }
    return true;
}
