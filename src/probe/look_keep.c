/* Rows of units go to the matrices that are made of them. */
#include "probe/look_pass.h"

void look_begin_layer(struct look_pass *pass, int64_t layer)
{
    pass->layer = layer;
    pass->here_count = 0;
    for (size_t n = 0; n < pass->settings->head_count; n++) {
        const struct look_head *wanted = &pass->settings->heads[n];
        if (wanted->layer == layer || wanted->layer == LOOK_MEAN)
            pass->here[pass->here_count++] = n;
    }
}

bool look_wants_mean(const struct look_pass *pass)
{
    for (size_t n = 0; n < pass->here_count; n++)
        if (pass->settings->heads[pass->here[n]].head == LOOK_MEAN)
            return true;
    return false;
}

bool look_wants_head(const struct look_pass *pass, int64_t head)
{
    for (size_t n = 0; n < pass->here_count; n++)
        if (pass->settings->heads[pass->here[n]].head == head)
            return true;
    return false;
}

static void write_row(struct look_pass *pass, size_t matrix, size_t unit, const float *row)
{
    struct look *look = pass->look;
    const size_t place = matrix * look->units + unit;
    if (!look->links) {
        float *weights = look->weights + place * look->units;
        for (size_t n = 0; n < look->units; n++)
            weights[n] = row[n];
        return;
    }
    double sum = 0.0;
    for (size_t n = 0; n < look->units; n++)
        sum += (double)row[n];
    look->row_sums[place] = (float)sum;
    look_find_links(row, look->units, look->links_a_row, look->links + place * look->links_a_row);
}

void look_keep_head(struct look_pass *pass, int64_t head, size_t unit, float *row, double total)
{
    const bool share = pass->settings->measure != LOOK_WEIGHTS && total > 0.0;
    for (size_t n = 0; share && n < pass->look->units; n++)
        row[n] = (float)((double)row[n] / total);
    for (size_t n = 0; n < pass->here_count; n++)
        if (pass->settings->heads[pass->here[n]].head == head)
            write_row(pass, pass->here[n], unit, row);
}

static void divide(double *row, size_t count, double divisor)
{
    for (size_t n = 0; divisor > 0.0 && n < count; n++)
        row[n] /= divisor;
}

/* `whole`: of all layers; else of the one that is observed. */
static void write_mean(struct look_pass *pass, bool whole, size_t unit, const double *row)
{
    for (size_t n = 0; n < pass->look->units; n++)
        pass->written[n] = (float)row[n];
    for (size_t n = 0; n < pass->here_count; n++) {
        const struct look_head *wanted = &pass->settings->heads[pass->here[n]];
        if (wanted->head == LOOK_MEAN && (wanted->layer == LOOK_MEAN) == whole)
            write_row(pass, pass->here[n], unit, pass->written);
    }
}

void look_keep_layer(struct look_pass *pass, size_t unit, double *row, double total)
{
    const enum look_measure measure = pass->settings->measure;
    const size_t units = pass->look->units;
    double *sums = pass->sums ? pass->sums + unit * units : NULL;
    if (sums && measure == LOOK_GRADIENT) {
        pass->totals[unit] += total;
        for (size_t n = 0; n < units; n++)
            sums[n] += row[n];
    }
    if (measure != LOOK_WEIGHTS)
        divide(row, units, total);
    for (size_t n = 0; sums && measure != LOOK_GRADIENT && n < units; n++)
        sums[n] += row[n];
    write_mean(pass, false, unit, row);
    if (measure == LOOK_ROLLOUT && pass->layer == pass->layers - 1)
        write_mean(pass, true, unit, row);
}

void look_keep_layer_rows(struct look_pass *pass, int64_t first, int64_t rows, int64_t keys,
                          const float *numbers)
{
    const size_t units = pass->look->units;
    struct look_row *row = &pass->rows[0];
    for (int64_t i = 0; i < rows; i++) {
        const size_t token = (size_t)(first + i);
        if (!look_row_take(pass->group, pass->tokens, row, token, numbers + i * keys, (size_t)keys))
            continue;
        for (size_t unit = 0; unit < units; unit++)
            pass->mean[unit] = (double)row->units[unit];
        look_keep_layer(pass, (size_t)pass->group[token], pass->mean, look_row_total(row, units));
        look_row_clear(row, units);
    }
}

void look_keep_sums(struct look_pass *pass)
{
    const size_t units = pass->look->units;
    for (size_t unit = 0; pass->sums && unit < units; unit++) {
        double *row = pass->sums + unit * units;
        divide(row, units,
               pass->settings->measure == LOOK_GRADIENT ? pass->totals[unit]
                                                        : (double)pass->layers);
        write_mean(pass, true, unit, row);
    }
}
