/* Attention rollout: Ā_n·…·Ā_0, Ā = ½·(mean over heads of P) + ½·I. */
#include <stdlib.h>
#include <string.h>

#include "probe/look_pass.h"

static bool allocate(struct look_pass *pass)
{
    const size_t tokens = pass->tokens;
    pass->rollout.product = calloc(tokens, tokens * sizeof(float));
    pass->rollout.next = calloc(tokens, tokens * sizeof(float));
    if (!pass->rollout.product || !pass->rollout.next)
        return false;
    for (size_t t = 0; t < tokens; t++)
        pass->rollout.product[t * tokens + t] = 1.0f;
    return true;
}

void look_rollout_release(struct look_rollout *rollout)
{
    free(rollout->product);
    free(rollout->next);
    *rollout = (struct look_rollout){0};
}

/* The tile's mean over heads, in place of the first head. */
static void average(float *tile, int64_t heads, int64_t numbers)
{
    for (int64_t head = 1; head < heads; head++)
        for (int64_t n = 0; n < numbers; n++)
            tile[n] += tile[head * numbers + n];
    for (int64_t n = 0; n < numbers; n++)
        tile[n] /= (float)heads;
}

/* Rows row..row+rows−1 of the next product, of which `keys` numbers are not 0 where the model looks
 * back only: P's are not, and neither are those of the rows that it is multiplied with. */
static void multiply(const struct look_pass *pass, int64_t row, int64_t rows, int64_t keys,
                     bool causal)
{
    const int64_t tokens = (int64_t)pass->tokens, columns = causal ? keys : tokens;
    const struct linear before = {.weight = pass->rollout.product,
                                  .in = keys,
                                  .out = columns,
                                  .layout = LINEAR_IN_OUT,
                                  .weight_stride = tokens};
    const float *old = pass->rollout.product + row * tokens;
    float *next = pass->rollout.next + row * tokens;
    linear_product(&before, rows, pass->tile, keys, next, tokens);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            next[i * tokens + j] = 0.5f * next[i * tokens + j] + 0.5f * old[i * tokens + j];
}

bool look_rollout_observe(struct look_pass *pass, const struct compute *compute,
                          const struct attention_record *record, struct attn_error *error)
{
    struct look_rollout *rollout = &pass->rollout;
    if (!rollout->product && !allocate(pass))
        return attn_error_memory(error);
    const int64_t tokens = (int64_t)pass->tokens;
    for (int64_t row = 0; row < tokens; row += pass->tile_rows) {
        const int64_t rows = tokens - row < pass->tile_rows ? tokens - row : pass->tile_rows;
        const int64_t keys = look_tile(pass, compute, record, 0, pass->heads, row, rows, error);
        if (keys < 0)
            return false;
        average(pass->tile, pass->heads, rows * keys);
        multiply(pass, row, rows, keys, look_is_causal(record));
    }
    float *product = rollout->next;
    rollout->next = rollout->product;
    rollout->product = product;
    if (pass->here_count > 0) {
        look_row_clear(&pass->rows[0], pass->look->units);
        look_keep_layer_rows(pass, 0, tokens, tokens, rollout->product);
    }
    return true;
}
