/* A map of three words and one panel, for tests that change a part of it. */
#ifndef ATTN_TESTS_DRAW_SMALL_MAP_H
#define ATTN_TESTS_DRAW_SMALL_MAP_H

#include "draw/attention_map.h"

static const char *const words[] = {"a", "b", "c"};
static const float causal[] = {1, 0, 0, 0.5f, 0.5f, 0, 0.75f, 0.125f, 0.125f};
static const struct map_panel panel = {4, 7, causal, NULL};

static inline struct attention_map map_of_three(void)
{
    return (struct attention_map){.model = "m",
                                  .rows = 3,
                                  .columns = 3,
                                  .row_labels = words,
                                  .row_label_count = 3,
                                  .column_labels = words,
                                  .column_label_count = 3,
                                  .panels = &panel,
                                  .panel_count = 1};
}

#endif
