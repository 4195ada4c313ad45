#include "look_map.h"

#include <stdlib.h>
#include <string.h>

static const char *measure_title(enum look_measure measure)
{
    switch (measure) {
    case LOOK_NORM:
        return "norm of what the key adds";
    case LOOK_ROLLOUT:
        return "attention rollout";
    case LOOK_GRADIENT:
        return "gradient × attention";
    case LOOK_WEIGHTS:
        break;
    }
    return NULL;
}

/* The links of all panels, as drawing calls them. */
static bool copy_links(const struct look *look, size_t head_count, struct look_map *map)
{
    const size_t count = head_count * look->units * look->links_a_row;
    map->links = calloc(count, sizeof *map->links);
    for (size_t n = 0; map->links && n < count; n++)
        map->links[n] = (struct map_link){look->links[n].column, look->links[n].weight};
    return map->links;
}

static bool make_panels(const struct look *look, const struct look_map_settings *settings,
                        struct look_map *map)
{
    map->panels = calloc(settings->head_count, sizeof *map->panels);
    if (!map->panels || (look->links && !copy_links(look, settings->head_count, map)))
        return false;
    for (size_t n = 0; n < settings->head_count; n++) {
        const struct look_head *head = &settings->heads[n];
        const size_t row = n * look->units;
        map->panels[n] = (struct map_panel){
            .layer = head->layer == LOOK_MEAN ? MAP_MEAN : (int)head->layer,
            .head = head->head == LOOK_MEAN ? MAP_MEAN : (int)head->head,
            .weights = look->weights ? look->weights + row * look->units : NULL,
            .links = map->links ? map->links + row * look->links_a_row : NULL,
        };
    }
    return true;
}

static bool mark_special(const struct look *look, struct look_map *map)
{
    map->special = calloc(look->units, sizeof *map->special);
    for (size_t unit = 0; map->special && unit < look->units; unit++)
        map->special[unit] = look->word[unit] == TOKEN_NO_WORD;
    return map->special;
}

/* A token as the text writes it; one that is in no text as the vocabulary does. */
static char *copy_token(const struct token *token, const struct tokenizer *tokenizer,
                        const struct text texts[2])
{
    if (token->text < 0 || token->begin == token->end)
        return look_label_piece(tokenizer, token->id);
    return look_label_word(texts[token->text == 1].data + token->begin, token->end - token->begin);
}

static bool make_vectors(const struct look *look, const struct encoding *encoding,
                         const struct tokenizer *tokenizer,
                         const struct look_map_settings *settings, struct look_map *map)
{
    const struct look_vectors *from = &look->vectors;
    const size_t tokens = encoding->token_count;
    map->token_labels = calloc(tokens + 1, sizeof *map->token_labels);
    if (!map->token_labels)
        return false;
    for (size_t t = 0; t < tokens; t++) {
        map->token_labels[t] = copy_token(&encoding->tokens[t], tokenizer, settings->texts);
        if (!map->token_labels[t])
            return false;
    }
    map->vectors = (struct map_vectors){
        .layers = (size_t)from->layers,
        .heads = (size_t)from->heads,
        .key_heads = (size_t)from->key_heads,
        .d = (size_t)from->d,
        .tokens = tokens,
        .scale = from->scale,
        .causal = settings->causal,
        .queries = from->queries,
        .keys = from->keys,
        .values = from->values,
        .labels = (const char *const *)map->token_labels,
        .row_tokens = look->first_token,
        .row_token_counts = look->token_counts,
    };
    map->map.vectors = &map->vectors;
    return true;
}

bool look_map_make(const struct look *look, const struct look_labels *labels,
                   const struct encoding *encoding, const struct tokenizer *tokenizer,
                   const struct look_map_settings *settings, struct look_map *map,
                   struct attn_error *error)
{
    const struct text *text = &settings->texts[0], *pair = &settings->texts[1];
    const char *const *names = (const char *const *)labels->units;
    *map = (struct look_map){0};
    const bool made = make_panels(look, settings, map) && mark_special(look, map);
    map->map = (struct attention_map){
        .model = settings->model,
        .text = text->data,
        .text_size = text->size,
        .pair = pair->data,
        .pair_size = pair->data ? pair->size : 0,
        .rows = look->units,
        .columns = look->units,
        .row_labels = names,
        .row_label_count = labels->count,
        .column_labels = names,
        .column_label_count = labels->count,
        .panels = map->panels,
        .panel_count = settings->head_count,
        .links_a_row = look->links ? look->links_a_row : 0,
        .renormalized = settings->renormalized,
        .measure = measure_title(settings->measure),
        .row_is_special = map->special,
        .column_is_special = map->special,
    };
    if (made && (!look->vectors.queries || make_vectors(look, encoding, tokenizer, settings, map)))
        return true;
    look_map_release(map);
    return attn_error_memory(error);
}

void look_map_release(struct look_map *map)
{
    for (size_t t = 0; map->token_labels && map->token_labels[t]; t++)
        free(map->token_labels[t]);
    free(map->token_labels);
    free(map->special);
    free(map->links);
    free(map->panels);
    *map = (struct look_map){0};
}
