/* One GGUF file, mapped: metadata and named tensors (versions 2 and 3, little-endian; the format's
 * published description, docs/gguf.md of the ggml project). Every length is checked before it is
 * used. */
#ifndef ATTN_FORMAT_GGUF_H
#define ATTN_FORMAT_GGUF_H

#include "format/stored_tensor.h"

struct gguf;

/* Whether a path is spelled as that of a GGUF file: it ends with .gguf. */
bool gguf_is_name(const char *path);

/* Opens and checks a file. Errors name the path and what is wrong: "PATH: tensor w has unknown type
 * 4096", "PATH: GGUF version 1 is not supported, only 2 and 3 are". Tensor shapes are in the order
 * of this house, [rows][columns], the reverse of the file's. Types of tensors that GGML knows and
 * this reader does not are named: "tensor w is IQ2_XS, which is not supported". Keys and names are
 * there once and without NUL; arrays of arrays are refused, as GGML does. Tensors lie inside the
 * file, at multiples of general.alignment (a power of two); gaps between them are allowed. */
bool gguf_open(struct gguf **file, const char *path, struct attn_error *error);
void gguf_close(struct gguf *file); /* NULL is allowed */
const char *gguf_path(const struct gguf *file);

size_t gguf_tensor_count(const struct gguf *file);
const struct stored_tensor *gguf_tensor_at(const struct gguf *file, size_t index);
const struct stored_tensor *gguf_tensor(const struct gguf *file, const char *name); /* or NULL */

/* Metadata by key. */
size_t gguf_key_count(const struct gguf *file);
const char *gguf_key_at(const struct gguf *file, size_t index);
bool gguf_has(const struct gguf *file, const char *key);

/* A string of the file: not terminated, any bytes. */
struct gguf_string {
    const char *text;
    size_t size;
};

enum gguf_need {
    GGUF_REQUIRED, /* a missing key is an error: "PATH: the file has no llama.block_count" */
    GGUF_OPTIONAL  /* *value is left as it is */
};

/* Each reads a value of its kind and refuses another: "PATH: tokenizer.ggml.merges is an array of
 * u8, expected strings". Whole numbers of any width and sign that fit are taken as such. */
bool gguf_integer(const struct gguf *file, const char *key, enum gguf_need need, int64_t *value,
                  struct attn_error *error);
bool gguf_float(const struct gguf *file, const char *key, enum gguf_need need, double *value,
                struct attn_error *error);
bool gguf_bool(const struct gguf *file, const char *key, enum gguf_need need, bool *value,
               struct attn_error *error);
bool gguf_text(const struct gguf *file, const char *key, enum gguf_need need,
               struct gguf_string *value, struct attn_error *error);

/* An array of strings, or of whole numbers (of 32 bits, u32 or i32, that fit int32_t): the
 * items are newly allocated, release them with free(). Strings point into the file. Missing and
 * optional: *items is NULL and *count 0. */
bool gguf_texts(const struct gguf *file, const char *key, enum gguf_need need,
                struct gguf_string **items, size_t *count, struct attn_error *error);
bool gguf_integers(const struct gguf *file, const char *key, enum gguf_need need, int32_t **items,
                   size_t *count, struct attn_error *error);

#endif
