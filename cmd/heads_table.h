/* The scores of heads as a table, CSV or JSON. */
#ifndef ATTN_CMD_HEADS_TABLE_H
#define ATTN_CMD_HEADS_TABLE_H

#include "heads_options.h"
#include "probe/head_scores.h"

/* A column by its name; false where there is none. */
bool heads_column_find(const char *name, size_t *column);

struct heads_report {
    const struct heads_options *options;
    const char *model;
    const struct head_survey *survey;
    const size_t *order; /* [count]: places in survey->scores, as they are shown */
    size_t count;
};

/* Which heads are shown, and in which order; newly allocated, NULL without memory. */
size_t *heads_order(const struct heads_options *options, const struct head_survey *survey,
                    size_t *count);

/* `report` is a struct heads_report. */
heads_render heads_table_render;

#endif
