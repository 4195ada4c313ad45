/* One look while the model computes: what the files of look.h share, and no other room sees. */
#ifndef ATTN_PROBE_LOOK_PASS_H
#define ATTN_PROBE_LOOK_PASS_H

#include "model/text_gradient.h"
#include "probe/look.h"

/* A row of units that grows while the rows of its unit's tokens come, one behind the other. */
struct look_row {
    float *units;    /* [units]: what was taken so far, at the end its mean over the queries */
    double left_out; /* the same of all tokens that no unit holds */
    size_t queries;  /* taken so far */
};

/* Of LOOK_NORM, for one layer. */
struct look_norm {
    int64_t pairs;     /* of heads: all, or each with itself alone */
    double *products;  /* [pairs][tokens]: scalar products of what two heads add of a token */
    float *projection; /* [heads·d][width]: Wo */
    float *identity;   /* [block][heads·d] */
    float *values;     /* [block][d] */
    float *added;      /* [heads][block][width] */
    float *norms;      /* [tile_rows][tokens] */
};

/* Of LOOK_ROLLOUT: the product of the layers so far, and the next one. */
struct look_rollout {
    float *product, *next; /* [tokens][tokens] */
};

/* Of LOOK_GRADIENT, for one layer. */
struct look_gradient {
    float *values;    /* [key heads][tokens][d] */
    float *d_o;       /* [tile_rows][d] */
    float *d_weights; /* [tile_rows][tokens] */
};

struct look_pass {
    const struct look_settings *settings;
    int64_t layers, heads; /* of the model */
    size_t tokens;
    const int32_t *group; /* [tokens]: the unit of each, or −1 */
    struct look *look;

    /* The layer that is observed, and the matrices to which it gives something. */
    int64_t layer;
    size_t *here; /* [here_count], room for head_count */
    size_t here_count;

    /* The weights of some heads and rows: see look_tile. */
    int64_t tile_heads, tile_rows;
    float *tile;
    struct look_row *rows; /* [tile_heads] */
    float *row_units;      /* [tile_heads][units]: theirs */

    /* Rows of the mean over a layer's heads that end in one tile; NULL without a mean. */
    double *mean;        /* [tile_rows][units] */
    double *mean_totals; /* [tile_rows] */
    float *written;      /* [units]: one row as it is kept */

    /* Sums over layers, where the mean of all is asked for; else NULL. */
    double *sums;   /* [units][units] */
    double *totals; /* [units] */

    struct look_norm norm;
    struct look_rollout rollout;
    struct look_gradient gradient;
};

enum { LOOK_LEFT_OUT = -1 }; /* in place of a unit */

/* look_units.c: look_name_units, and which unit each token belongs to: (*group)[tokens], which the
 * caller frees. */
bool look_form_units(const struct encoding *encoding, enum look_unit unit, bool special,
                     struct look *look, int32_t **group, struct attn_error *error);

/* look_rows.c: takes the row of `token`, keys 0..keys−1 of it, the others being 0. True where it
 * was its unit's last: then `row` is whole and wants to be cleared before it takes another. */
bool look_row_take(const int32_t *group, size_t tokens, struct look_row *row, size_t token,
                   const float *weights, size_t keys);
void look_row_clear(struct look_row *row, size_t units);

/* What a whole row sums to over all tokens. */
double look_row_total(const struct look_row *row, size_t units);

/* look_tile.c: rebuilds the weights of heads head..head+heads−1, rows row..row+rows−1, into
 * pass->tile[heads][rows][keys]; keys, which is returned, is what the last of the rows can see.
 * Negative on failure. */
int64_t look_tile(struct look_pass *pass, const struct compute *compute,
                  const struct attention_record *record, int64_t head, int64_t heads, int64_t row,
                  int64_t rows, struct attn_error *error);
bool look_is_causal(const struct attention_record *record);

/* Numbers of one head's tokens first..first+count−1, packed. */
void look_copy_rows(const attn_tensor *tensor, int64_t head, int64_t first, int64_t count,
                    float *rows);

/* look_keep.c: a row of one head, or of a whole layer, goes to the matrices that are made of it.
 * `total` is its sum over all tokens, by which shares are divided. Both change the row. */
void look_keep_head(struct look_pass *pass, int64_t head, size_t unit, float *row, double total);
void look_keep_layer(struct look_pass *pass, size_t unit, double *row, double total);
void look_keep_sums(struct look_pass *pass); /* the mean of all layers, at the end */

/* numbers[rows][keys] of a whole layer, by token, rows first..first+rows−1: those of units that end
 * there go the same way. What has begun waits in pass->rows[0], cleared before the layer. */
void look_keep_layer_rows(struct look_pass *pass, int64_t first, int64_t rows, int64_t keys,
                          const float *numbers);

/* The layer that is observed next; whether some matrix wants the mean over its heads, and whether
 * one wants this head alone. */
void look_begin_layer(struct look_pass *pass, int64_t layer);
bool look_wants_mean(const struct look_pass *pass);
bool look_wants_head(const struct look_pass *pass, int64_t head);

/* What weights and gradients have in common: head by head, and their mean. `change` makes of a
 * tile's weights what is to be kept of them; NULL: the weights. */
typedef void look_change_tile(struct look_pass *pass, const struct attention_record *record,
                              const attn_tensor *d_o, int64_t head, int64_t row, int64_t rows,
                              int64_t keys, float *tile);
bool look_collect_heads(struct look_pass *pass, const struct compute *compute,
                        const struct attention_record *record, look_change_tile *change,
                        const attn_tensor *d_o, struct attn_error *error);

/* The same without the mean. */
bool look_collect_alone(struct look_pass *pass, const struct compute *compute,
                        const struct attention_record *record, look_change_tile *change,
                        const attn_tensor *d_o, struct attn_error *error);

/* Each measure's part of a layer. */
bool look_weights_observe(struct look_pass *pass, const struct compute *compute,
                          const struct attention_record *record, struct attn_error *error);
bool look_norm_observe(struct look_pass *pass, const struct compute *compute,
                       const struct attention_record *record, struct attn_error *error);
bool look_rollout_observe(struct look_pass *pass, const struct compute *compute,
                          const struct attention_record *record, struct attn_error *error);
bool look_gradient_observe(struct look_pass *pass, const struct compute *compute,
                           const struct attention_record *record, const attn_tensor *d_o,
                           struct attn_error *error);
void look_norm_release(struct look_norm *norm);
void look_rollout_release(struct look_rollout *rollout);
void look_gradient_release(struct look_gradient *gradient);

/* look_vectors.c */
bool look_vectors_observe(struct look_pass *pass, const struct attention_record *record,
                          struct attn_error *error);
void look_vectors_release(struct look_vectors *vectors);

/* look_links.c: the strongest of a row, at most `count`, as in struct look. */
void look_find_links(const float *row, size_t columns, size_t count, struct look_link *links);

/* look_memory.c: what is held at once beside the model. */
struct look_size {
    bool mean, all; /* whether some matrix is a mean over heads, and one over all layers */
    int64_t tile_heads, tile_rows;
    size_t links_a_row;
    double bytes;
};

struct look_size look_size_of(const struct text_model_settings *model,
                              const struct look_settings *settings, size_t tokens, size_t units);

/* Refuses a size above `available` bytes. */
bool look_size_check(const struct look_size *size, const struct look_settings *settings,
                     size_t units, int64_t available, struct attn_error *error);

#endif
