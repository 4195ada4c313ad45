#include "gguf_builder.h"

#include <string.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

enum { ALIGNMENT = 32 };

static void add_number(struct gguf_builder *builder, uint64_t number, int size)
{
    for (int i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(number >> 8 * i);
        attn_buffer_add(&builder->bytes, &byte, 1);
    }
}

void gguf_add_u32(struct gguf_builder *builder, uint32_t number)
{
    add_number(builder, number, 4);
}

void gguf_add_u64(struct gguf_builder *builder, uint64_t number)
{
    add_number(builder, number, 8);
}

void gguf_add_string(struct gguf_builder *builder, const char *text)
{
    gguf_add_u64(builder, strlen(text));
    attn_buffer_add_text(&builder->bytes, text);
}

void gguf_add_header(struct gguf_builder *builder, uint32_t version, uint64_t tensors,
                     uint64_t values)
{
    attn_buffer_add_text(&builder->bytes, "GGUF");
    gguf_add_u32(builder, version);
    gguf_add_u64(builder, tensors);
    gguf_add_u64(builder, values);
}

void gguf_add_key(struct gguf_builder *builder, const char *key, uint32_t type)
{
    gguf_add_string(builder, key);
    gguf_add_u32(builder, type);
}

void gguf_add_tensor(struct gguf_builder *builder, const char *name, uint64_t dimension,
                     uint32_t type, uint64_t offset)
{
    gguf_add_string(builder, name);
    gguf_add_u32(builder, 1);
    gguf_add_u64(builder, dimension);
    gguf_add_u32(builder, type);
    gguf_add_u64(builder, offset);
}

void gguf_add_data(struct gguf_builder *builder, size_t size)
{
    while (builder->bytes.size % ALIGNMENT != 0)
        add_number(builder, 0, 1);
    for (size_t i = 0; i < size; i++)
        add_number(builder, 0, 1);
}

char *gguf_build(struct gguf_builder *builder, const char *folder, const char *name)
{
    assert_false(builder->bytes.failed);
    scratch_write(folder, name, builder->bytes.data, builder->bytes.size);
    attn_buffer_release(&builder->bytes);
    char *path = attn_path_join(folder, name);
    assert_non_null(path);
    return path;
}
