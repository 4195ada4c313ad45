/* Builds a GGUF file byte by byte, a wrong one too. */
#ifndef ATTN_TESTS_GGUF_BUILDER_H
#define ATTN_TESTS_GGUF_BUILDER_H

#include <stdint.h>

#include "base/buffer.h"

/* Start from zeros, add what the file shall have in its order, and release the buffer. */
struct gguf_builder {
    struct attn_buffer bytes;
};

void gguf_add_u32(struct gguf_builder *builder, uint32_t number);
void gguf_add_u64(struct gguf_builder *builder, uint64_t number);
void gguf_add_string(struct gguf_builder *builder, const char *text); /* its length, then it */

/* "GGUF", a version and the counts. */
void gguf_add_header(struct gguf_builder *builder, uint32_t version, uint64_t tensors,
                     uint64_t values);

/* A key and the type of its value, by the format's number; the value follows. */
void gguf_add_key(struct gguf_builder *builder, const char *key, uint32_t type);

/* A tensor of one dimension by the number of its type in GGML. */
void gguf_add_tensor(struct gguf_builder *builder, const char *name, uint64_t dimension,
                     uint32_t type, uint64_t offset);

/* Zeros up to a multiple of 32, then as many more as are asked for. */
void gguf_add_data(struct gguf_builder *builder, size_t size);

/* Writes FOLDER/NAME, frees the bytes and returns the path, newly allocated. */
char *gguf_build(struct gguf_builder *builder, const char *folder, const char *name);

#endif
