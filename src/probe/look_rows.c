/* Rows of tokens become rows of units. */
#include <string.h>

#include "probe/look_pass.h"

void look_row_clear(struct look_row *row, size_t units)
{
    memset(row->units, 0, units * sizeof *row->units);
    row->left_out = 0.0;
    row->queries = 0;
}

/* What a model that looks back can have seen: units up to that of the last key. */
static void finish(struct look_row *row, size_t units)
{
    const float queries = (float)row->queries;
    for (size_t unit = 0; row->queries > 1 && unit < units; unit++)
        row->units[unit] /= queries;
    row->left_out /= (double)row->queries;
}

bool look_row_take(const int32_t *group, size_t tokens, struct look_row *row, size_t token,
                   const float *weights, size_t keys)
{
    if (group[token] < 0)
        return false;
    size_t seen = 0;
    for (size_t key = 0; key < keys;) {
        const int32_t unit = group[key];
        if (unit < 0) {
            row->left_out += (double)weights[key++];
            continue;
        }
        /* Of this query alone first: beside what many queries gave, each piece would be rounded. */
        float sum = 0.0f;
        do
            sum += weights[key++];
        while (key < keys && group[key] == unit);
        row->units[unit] += sum;
        seen = (size_t)unit + 1;
    }
    row->queries++;
    if (token + 1 < tokens && group[token + 1] == group[token])
        return false;
    finish(row, seen);
    return true;
}

double look_row_total(const struct look_row *row, size_t units)
{
    double sums[4] = {row->left_out, 0.0, 0.0, 0.0};
    size_t unit = 0;
    for (; unit + 4 <= units; unit += 4)
        for (size_t n = 0; n < 4; n++)
            sums[n] += (double)row->units[unit + n];
    for (; unit < units; unit++)
        sums[0] += (double)row->units[unit];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void look_renormalize_rows(float *weights, size_t rows, size_t columns)
{
    for (size_t row = 0; row < rows; row++, weights += columns) {
        float sum = 0;
        for (size_t column = 0; column < columns; column++)
            sum += weights[column];
        for (size_t column = 0; sum > 0 && column < columns; column++)
            weights[column] /= sum;
    }
}

void look_renormalize(struct look *look, size_t head_count)
{
    if (look->weights)
        look_renormalize_rows(look->weights, head_count * look->units, look->units);
    for (size_t row = 0; look->links && row < head_count * look->units; row++) {
        struct look_link *links = look->links + row * look->links_a_row;
        for (size_t n = 0; look->row_sums[row] > 0 && n < look->links_a_row; n++)
            links[n].weight /= look->row_sums[row];
    }
}
