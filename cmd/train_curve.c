#include "train_curve.h"

#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "draw/curve.h"

/* Steps and losses of the rows that have one. */
struct points {
    double *x, *y;
    size_t count;
};

static void add_point(struct points *points, int64_t step, double loss)
{
    if (!isfinite(loss))
        return;
    points->x[points->count] = (double)step;
    points->y[points->count++] = loss;
}

static bool draw(const struct training_log *log, struct points *batches, struct points *held_out,
                 struct attn_buffer *svg, struct attn_error *error)
{
    for (size_t i = 0; i < log->count; i++) {
        add_point(batches, log->rows[i].step, log->rows[i].loss);
        add_point(held_out, log->rows[i].step, log->rows[i].held_out);
    }
    const struct curve_series series[] = {
        {"a step's batch", batches->count, batches->x, batches->y},
        {"held-out text", held_out->count, held_out->x, held_out->y},
    };
    const struct curve curve = {
        .title = "Loss of the training",
        .x_label = "steps",
        .y_label = "loss",
        .series = series,
        .series_count = held_out->count > 0 ? 2 : 1,
    };
    return curve_svg(&curve, svg, error);
}

static bool write_curve(const struct training_log *log, const char *path, double *numbers,
                        struct attn_error *error)
{
    struct points batches = {numbers, numbers + log->count, 0};
    struct points held_out = {numbers + 2 * log->count, numbers + 3 * log->count, 0};
    struct attn_buffer svg = {0};
    bool done = draw(log, &batches, &held_out, &svg, error) &&
                attn_file_write(path, svg.data, svg.size, error);
    attn_buffer_release(&svg);
    return done;
}

bool train_curve_write(const struct training_log *log, const char *directory,
                       struct attn_error *error)
{
    if (log->count == 0)
        return true;
    char *path = attn_path_join(directory, "loss.svg");
    double *numbers = calloc(4 * log->count, sizeof *numbers);
    bool done = path && numbers ? write_curve(log, path, numbers, error) : attn_error_memory(error);
    free(numbers);
    free(path);
    return done;
}
