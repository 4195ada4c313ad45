#include "probe/look.h"

#include <stdlib.h>
#include <string.h>

#include "base/available_memory.h"
#include "probe/look_heads.h"
#include "probe/look_pass.h"

/* Those of the model, of which a rollout has layers alone. */
static bool check_heads(const struct text_model_settings *model,
                        const struct look_settings *settings, struct attn_error *error)
{
    if (!look_heads_check(settings->heads, settings->head_count, model, error))
        return false;
    for (size_t n = 0; settings->measure == LOOK_ROLLOUT && n < settings->head_count; n++)
        if (settings->heads[n].head != LOOK_MEAN)
            return attn_error_set(error, "L%lldH%lld: a rollout is of layers, not of single heads",
                                  (long long)settings->heads[n].layer,
                                  (long long)settings->heads[n].head);
    return true;
}

static bool check(const struct text_model_settings *model, const struct encoding *encoding,
                  const struct look_settings *settings, struct attn_error *error)
{
    if (settings->head_count == 0)
        return attn_error_set(error, "no head to look at");
    if (settings->change && settings->measure == LOOK_GRADIENT)
        return attn_error_set(error, "gradients are of the model as it is, without a change");
    if (!check_heads(model, settings, error))
        return false;
    if (encoding->token_count > (size_t)model->positions)
        return attn_error_set(error, "the text has %zu tokens, the model has %lld positions",
                              encoding->token_count, (long long)model->positions);
    for (size_t t = 0; t < encoding->token_count; t++)
        if (encoding->tokens[t].word != TOKEN_NO_WORD)
            return true;
    return attn_error_set(error, "the text has no word to look from");
}

/* What has been allowed fits into size_t. Each array has at least one element. */
static bool allocate(struct look_pass *pass, const struct look_size *size)
{
    struct look *look = pass->look;
    const size_t units = look->units, matrices = pass->settings->head_count;
    const size_t heads = (size_t)size->tile_heads, rows = (size_t)size->tile_rows;
    pass->here = calloc(matrices, sizeof *pass->here);
    pass->tile = calloc(heads * rows, pass->tokens * sizeof *pass->tile);
    pass->rows = calloc(heads, sizeof *pass->rows);
    pass->row_units = calloc(heads, units * sizeof *pass->row_units);
    bool made = pass->here && pass->tile && pass->rows && pass->row_units;
    for (size_t n = 0; made && n < heads; n++)
        pass->rows[n].units = pass->row_units + n * units;
    if (size->mean) {
        pass->mean = calloc(rows, units * sizeof *pass->mean);
        pass->mean_totals = calloc(rows, sizeof *pass->mean_totals);
        pass->written = calloc(units, sizeof *pass->written);
        made = made && pass->mean && pass->mean_totals && pass->written;
    }
    if (size->all && pass->settings->measure != LOOK_ROLLOUT) {
        pass->sums = calloc(units, units * sizeof *pass->sums);
        pass->totals = calloc(units, sizeof *pass->totals);
        made = made && pass->sums && pass->totals;
    }
    if (!pass->settings->links) {
        look->weights = calloc(matrices, units * units * sizeof *look->weights);
        return made && look->weights;
    }
    look->links_a_row = size->links_a_row;
    look->links = calloc(matrices * units, look->links_a_row * sizeof *look->links);
    look->row_sums = calloc(matrices, units * sizeof *look->row_sums);
    return made && look->links && look->row_sums;
}

static void release(struct look_pass *pass)
{
    free(pass->here);
    free(pass->tile);
    free(pass->rows);
    free(pass->row_units);
    free(pass->mean);
    free(pass->mean_totals);
    free(pass->written);
    free(pass->sums);
    free(pass->totals);
    look_norm_release(&pass->norm);
    look_rollout_release(&pass->rollout);
    look_gradient_release(&pass->gradient);
}

/* Whether a rollout has come to the last layer that is asked for. */
static bool is_behind(const struct look_pass *pass, int64_t layer)
{
    for (size_t n = 0; n < pass->settings->head_count; n++)
        if (pass->settings->heads[n].layer >= layer || pass->settings->heads[n].layer == LOOK_MEAN)
            return false;
    return true;
}

static bool check_record(const struct attention_record *record, struct attn_error *error)
{
    if (record->q.type == ATTN_F32 && record->k.type == ATTN_F32 && record->v.type == ATTN_F32)
        return true;
    return attn_error_set(error, "queries, keys and values must be 32-bit numbers to be looked at");
}

static bool observe(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, struct attn_error *error)
{
    struct look_pass *pass = user;
    look_begin_layer(pass, layer);
    if (!check_record(record, error) ||
        (pass->settings->vectors && !look_vectors_observe(pass, record, error)))
        return false;
    if (pass->settings->measure == LOOK_ROLLOUT)
        return is_behind(pass, layer) || look_rollout_observe(pass, compute, record, error);
    if (pass->here_count == 0)
        return true;
    if (pass->settings->measure == LOOK_NORM)
        return look_norm_observe(pass, compute, record, error);
    return look_weights_observe(pass, compute, record, error);
}

static bool observe_gradient(void *user, int64_t layer, const struct compute *compute,
                             const struct attention_record *record, const attn_tensor *d_o,
                             struct attn_error *error)
{
    struct look_pass *pass = user;
    look_begin_layer(pass, layer);
    if (!check_record(record, error) ||
        (pass->settings->vectors && !look_vectors_observe(pass, record, error)))
        return false;
    return pass->here_count == 0 || look_gradient_observe(pass, compute, record, d_o, error);
}

/* The change has a user of its own. */
static const struct attention_change *change(void *user, int64_t layer)
{
    const struct look_settings *settings = ((const struct look_pass *)user)->settings;
    return settings->change(settings->change_user, layer);
}

static bool run(struct look_pass *pass, struct text_model *model, const struct compute *compute,
                const struct encoding *encoding, struct attn_error *error)
{
    if (pass->settings->measure == LOOK_GRADIENT) {
        const struct gradient_observer observer = {observe_gradient, pass};
        struct gradient_subject subject;
        return text_gradient_run(model, compute, encoding, &observer, &subject, error);
    }
    const struct model_observer observer = {observe, pass, pass->settings->change ? change : NULL};
    return text_model_read(model, compute, encoding, &observer, NULL, error);
}

bool look_run(struct text_model *model, const struct compute *compute,
              const struct encoding *encoding, const struct look_settings *settings,
              struct look *look, struct attn_error *error)
{
    *look = (struct look){0};
    const struct text_model_settings *shape = text_model_get_settings(model);
    if (!check(shape, encoding, settings, error))
        return false;

    int32_t *group;
    if (!look_form_units(encoding, settings->unit, settings->special, look, &group, error))
        return false;
    struct look_pass pass = {
        .settings = settings,
        .layers = shape->layers,
        .heads = shape->heads,
        .tokens = encoding->token_count,
        .group = group,
        .look = look,
    };
    const struct look_size size = look_size_of(shape, settings, pass.tokens, look->units);
    pass.tile_heads = size.tile_heads;
    pass.tile_rows = size.tile_rows;
    const bool done =
        look_size_check(&size, settings, look->units, attn_available_memory(""), error) &&
        (allocate(&pass, &size) || attn_error_memory(error)) &&
        run(&pass, model, compute, encoding, error);
    if (done)
        look_keep_sums(&pass);
    release(&pass);
    free(group);
    if (!done)
        look_release(look);
    return done;
}

void look_release(struct look *look)
{
    free(look->first_token);
    free(look->token_counts);
    free(look->word);
    free(look->weights);
    free(look->links);
    free(look->row_sums);
    look_vectors_release(&look->vectors);
    *look = (struct look){0};
}
