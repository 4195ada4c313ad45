#include <stdlib.h>

#include "base/checked.h"
#include "model/causal_session_parts.h"

enum { DEFAULT_CHUNK = 512 };

/* Most tokens that a chunk has, never more than all sequences hold. */
static int64_t chunk_of(const struct causal_session_settings *settings)
{
    const int64_t wanted = settings->chunk > 0 ? settings->chunk : DEFAULT_CHUNK;
    int64_t all;
    if (!attn_checked_multiply(settings->sequences, settings->capacity, &all))
        return wanted;
    return wanted < all ? wanted : all;
}

static bool check_settings(const struct causal_session_settings *settings,
                           const struct causal_settings *model, struct attn_error *error)
{
    if (settings->sequences < 1)
        return attn_error_set(error, "%lld sequences asked for, at least 1 is needed",
                              (long long)settings->sequences);
    if (settings->capacity < 1 || settings->capacity > model->context)
        return attn_error_set(error,
                              "a context of %lld tokens is asked for, the model has %lld positions",
                              (long long)settings->capacity, (long long)model->context);
    return settings->chunk >= 0 ||
           attn_error_set(error, "chunks of %lld tokens are asked for, at least 1 is needed",
                          (long long)settings->chunk);
}

static bool create_cache(struct causal_session *session, const struct causal_settings *model,
                         struct attn_error *error)
{
    const struct key_value_settings settings = {
        .type = session->settings.cache,
        .layers = model->layers,
        .sequences = session->settings.sequences,
        .heads = model->key_heads,
        .d = model->head_size,
        .capacity = session->settings.capacity,
    };
    return key_value_cache_create(&session->cache, &settings, error);
}

/* One array of the pass. */
struct share {
    float **array;
    int64_t numbers; /* a token */
};

/* Whole cache lines, so that every array begins on one. */
static int64_t share_size(const struct share *share)
{
    enum { LINE = ATTN_ALIGNMENT / sizeof(float) };
    return (share->numbers + LINE - 1) / LINE * LINE;
}

/* All arrays of the pass, one behind the other. */
static bool allocate_arrays(struct causal_session *session, const struct causal_settings *model,
                            struct attn_error *error)
{
    const bool llama = model->kind == MODEL_LLAMA;
    const int64_t pairs = llama ? model->head_size / 2 : 0;
    struct causal_pass *pass = &session->pass;
    const struct share shares[] = {
        {&pass->x, model->width},
        {&pass->normed, model->width},
        {&pass->projected, causal_projected_width(model)},
        {&pass->blended, model->heads * model->head_size},
        {&pass->gate, llama ? model->inner : 0},
        {&pass->up, model->inner},
        {&pass->cosines, pairs},
        {&pass->sines, pairs},
        {&pass->stats, cached_attention_stats(model->heads, 1)},
        {&session->position, model->width},
    };
    const size_t count = sizeof shares / sizeof shares[0];
    const int64_t chunk = session->settings.chunk;
    int64_t token = 0;
    for (size_t n = 0; n < count; n++)
        token += share_size(&shares[n]);
    int64_t bytes;
    if (!attn_checked_multiply(token * (int64_t)sizeof(float), chunk, &bytes) ||
        (uint64_t)bytes > SIZE_MAX)
        return attn_error_memory(error);
    float *next = attn_workspace_reserve(&session->memory, &attn_allocator_default, (size_t)bytes);
    if (!next)
        return attn_error_memory(error);
    for (size_t n = 0; n < count; n++) {
        *shares[n].array = next;
        next += share_size(&shares[n]) * chunk;
    }
    return true;
}

static bool allocate_places(struct causal_session *session, struct attn_error *error)
{
    const size_t sequences = (size_t)session->settings.sequences;
    session->before = calloc(sequences, sizeof *session->before);
    session->slots = calloc(sequences, sizeof *session->slots);
    session->starts = calloc(sequences + 1, sizeof *session->starts);
    return (session->before && session->slots && session->starts) || attn_error_memory(error);
}

static bool create_workspace(struct causal_session *session, const struct causal_settings *model,
                             struct attn_error *error)
{
    return matrix_workspace_create(&session->pass.workspace, session->pass.compute,
                                   session->settings.chunk, causal_widest(model), error);
}

bool causal_session_create(struct causal_session **session, const struct causal_model *model,
                           const struct compute *compute,
                           const struct causal_session_settings *settings, struct attn_error *error)
{
    *session = NULL;
    const struct causal_settings *shape = causal_model_get_settings(model);
    if (!check_settings(settings, shape, error))
        return false;
    struct causal_session *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    made->settings = *settings;
    made->settings.chunk = chunk_of(settings);
    made->pass.model = model;
    made->pass.compute = compute;
    made->pass.precision = settings->precision;
    if (!create_cache(made, shape, error) || !allocate_places(made, error) ||
        !allocate_arrays(made, shape, error) || !create_workspace(made, shape, error)) {
        causal_session_destroy(made);
        return false;
    }
    made->pass.cache = &made->cache;
    made->pass.batch.batch.starts = made->starts;
    made->pass.batch.slots = made->slots;
    *session = made;
    return true;
}

void causal_session_destroy(struct causal_session *session)
{
    if (!session)
        return;
    matrix_workspace_destroy(session->pass.workspace);
    attn_workspace_release(&session->memory, &attn_allocator_default);
    key_value_cache_release(&session->cache);
    free(session->before);
    free(session->slots);
    free(session->starts);
    free(session);
}

const struct causal_session_settings *
causal_session_get_settings(const struct causal_session *session)
{
    return &session->settings;
}

const struct causal_model *causal_session_get_model(const struct causal_session *session)
{
    return session->pass.model;
}

int64_t causal_session_length(const struct causal_session *session, int64_t sequence)
{
    return session->cache.lengths[sequence];
}

void causal_session_truncate(struct causal_session *session, int64_t sequence, int64_t length)
{
    if (length < session->cache.lengths[sequence])
        session->cache.lengths[sequence] = length;
}
