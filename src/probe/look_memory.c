#include "probe/look_pass.h"

enum {
    ROWS = 32,         /* at least, of a tile: what attn_weights rebuilds together */
    ROWS_OF_ALL = 256, /* of a tile, those of all its heads added up: so that threads have work */
    ROLLOUT_ROWS = 128 /* that are multiplied at once */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void plan_tile(struct look_size *size, const struct text_model_settings *model,
                      const struct look_settings *settings, size_t tokens)
{
    const bool rollout = settings->measure == LOOK_ROLLOUT;
    size->tile_heads = model->heads;
    if (!size->mean && settings->head_count < (size_t)model->heads)
        size->tile_heads = (int64_t)settings->head_count;
    const int64_t least = rollout ? ROLLOUT_ROWS : ROWS;
    int64_t rows = ROWS_OF_ALL / size->tile_heads / ROWS * ROWS;
    rows = rows < least ? least : rows;
    size->tile_rows = smaller(rows, (int64_t)tokens);
}

/* In double: sizes from outside cannot overflow it. */
struct look_size look_size_of(const struct text_model_settings *model,
                              const struct look_settings *settings, size_t tokens, size_t units)
{
    struct look_size size = {0};
    for (size_t n = 0; n < settings->head_count; n++) {
        size.mean = size.mean || settings->heads[n].head == LOOK_MEAN;
        size.all = size.all || settings->heads[n].layer == LOOK_MEAN;
    }
    plan_tile(&size, model, settings, tokens);
    size.links_a_row = settings->links < units ? settings->links : units;

    const double matrices = (double)settings->head_count, t = (double)tokens, u = (double)units;
    const double heads = (double)model->heads, width = (double)model->width;
    const double layers = (double)model->layers, rows = (double)size.tile_rows;
    const double number = sizeof(float), large = sizeof(double), link = sizeof(struct look_link);
    size.bytes = (double)size.tile_heads * (rows * t + u) * number;
    size.bytes += t * (double)(2 * sizeof(size_t) + 2 * sizeof(int32_t)); /* units */
    size.bytes += settings->links ? matrices * u * ((double)size.links_a_row * link + number)
                                  : matrices * u * u * number;
    if (size.mean)
        size.bytes += rows * (u + 1.0) * large;
    if (size.all && settings->measure != LOOK_ROLLOUT)
        size.bytes += u * (u + 1.0) * large;
    if (settings->measure == LOOK_NORM)
        size.bytes += (size.mean ? heads * (heads + 1.0) / 2.0 : heads) * t * large +
                      (width * width + rows * t) * number;
    if (settings->measure == LOOK_ROLLOUT)
        size.bytes += 2.0 * t * t * number;
    if (settings->measure == LOOK_GRADIENT)
        size.bytes += (layers + 1.0) * t * width * number;
    if (settings->vectors)
        size.bytes += 3.0 * layers * t * width * number;
    return size;
}

bool look_size_check(const struct look_size *size, const struct look_settings *settings,
                     size_t units, int64_t available, struct attn_error *error)
{
    const double gigabyte = 1073741824.0;
    if (size->bytes <= (double)available)
        return true;
    return attn_error_set(error,
                          "%zu %s of %zu × %zu numbers take %.1f GiB, %.1f GiB are available: look "
                          "at fewer heads, or at a shorter text",
                          settings->head_count, settings->head_count == 1 ? "matrix" : "matrices",
                          units, units, size->bytes / gigabyte, (double)available / gigabyte);
}
