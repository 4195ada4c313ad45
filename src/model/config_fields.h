/* What the readers and writers of config.json share. Messages begin with the file's name;
 * config_read puts its directory before them. */
#ifndef ATTN_MODEL_CONFIG_FIELDS_H
#define ATTN_MODEL_CONFIG_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "nn/activation.h"

#define CONFIG_FILE_NAME "config.json"

enum {
    CONFIG_LAYER_LIMIT = 1000,
    CONFIG_SIZE_LIMIT = 1000000 /* beyond any model, and a product of three of them fits 64 bits */
};

/* Reads DIRECTORY/config.json and has `take` fill `config` from it. */
bool config_read(const char *directory,
                 bool (*take)(void *config, const json_t *object, struct attn_error *error),
                 void *config, struct attn_error *error);

/* The text of a field; NULL when it is absent or null and not required. */
bool config_text(const json_t *object, const char *name, bool required, const char **text,
                 struct attn_error *error);

struct config_size {
    const char *name;
    long long limit; /* 1..limit */
    int64_t *size;
};

/* Whole numbers that must be there. */
bool config_sizes(const json_t *object, const struct config_size *fields, size_t count,
                  struct attn_error *error);

/* That `heads`, called heads_name, divides `width`. */
bool config_check_heads(const char *heads_name, int64_t heads, const char *width_name,
                        int64_t width, struct attn_error *error);

/* A number in 0..1, `fallback` where it is absent or null. */
bool config_share(const json_t *object, const char *name, double fallback, float *share,
                  struct attn_error *error);

/* A known activation's name; `fallback` where it is absent, or required where that is NULL. */
bool config_activation(const json_t *object, const char *name, const char *fallback,
                       enum activation *activation, struct attn_error *error);

/* Refuses a field that is neither absent nor null nor `expected`: "config.json: is_decoder is not
 * false: REASON". */
bool config_expect(const json_t *object, const char *name, bool expected, const char *reason,
                   struct attn_error *error);

/* model_type; other ones than `expected` are refused. */
bool config_expect_type(const json_t *object, const char *expected, struct attn_error *error);

/* The name that config_activation reads. */
const char *config_activation_name(enum activation activation);

/* Lines of the file, each with its comma. An id of −1 is null. */
void config_add_float(struct attn_buffer *text, const char *name, float value);
void config_add_id(struct attn_buffer *text, const char *name, int32_t id);

/* Writes DIRECTORY/config.json whole or not at all, and releases `text`. */
bool config_write(const char *directory, struct attn_buffer *text, struct attn_error *error);

#endif
