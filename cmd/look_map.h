/* From a look to the map that is drawn: for `attn look` and `attn serve`. */
#ifndef ATTN_CMD_LOOK_MAP_H
#define ATTN_CMD_LOOK_MAP_H

#include "draw/attention_map.h"
#include "look_labels.h"

/* What a map says beside its numbers. */
struct look_map_settings {
    const char *model;             /* its name */
    const struct text *texts;      /* [2]: the text, and the pair or {NULL, 0} */
    const struct look_head *heads; /* [head_count]: of the look's matrices, in order */
    size_t head_count;
    enum look_measure measure;
    bool renormalized;
    bool causal;
};

/* Holds what the map points to, beside the look and its labels, which must outlive it. */
struct look_map {
    struct attention_map map;
    struct map_panel *panels;
    struct map_link *links;
    bool *special;
    struct map_vectors vectors;
    char **token_labels;
};

/* Release with look_map_release; on failure nothing is held. */
bool look_map_make(const struct look *look, const struct look_labels *labels,
                   const struct encoding *encoding, const struct tokenizer *tokenizer,
                   const struct look_map_settings *settings, struct look_map *map,
                   struct attn_error *error);
void look_map_release(struct look_map *map);

#endif
