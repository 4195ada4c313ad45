#include "gguf_contents.h"

#include <stdlib.h>
#include <string.h>

/* All of it, so that the sanitizers see it. */
static void read_bytes(const void *bytes, size_t size)
{
    void *copy = malloc(size + 1);
    if (copy)
        memcpy(copy, bytes, size);
    free(copy);
}

static void read_single(const struct gguf *file, const char *key)
{
    struct attn_error error;
    int64_t integer;
    double number;
    bool truth;
    struct gguf_string text;
    gguf_integer(file, key, GGUF_REQUIRED, &integer, &error);
    gguf_float(file, key, GGUF_REQUIRED, &number, &error);
    gguf_bool(file, key, GGUF_REQUIRED, &truth, &error);
    if (gguf_text(file, key, GGUF_REQUIRED, &text, &error))
        read_bytes(text.text, text.size);
}

static void read_array(const struct gguf *file, const char *key)
{
    struct attn_error error;
    struct gguf_string *texts;
    int32_t *integers;
    size_t count;
    if (gguf_texts(file, key, GGUF_REQUIRED, &texts, &count, &error))
        for (size_t i = 0; i < count; i++)
            read_bytes(texts[i].text, texts[i].size);
    free(texts);
    gguf_integers(file, key, GGUF_REQUIRED, &integers, &count, &error);
    free(integers);
}

static void read_tensor(const struct stored_tensor *tensor)
{
    struct attn_error error;
    read_bytes(tensor->data, tensor->size);
    float *floats = malloc(((size_t)tensor->elements + 1) * sizeof *floats);
    if (floats)
        stored_tensor_to_floats(tensor, floats, &error);
    free(floats);
}

bool gguf_contents_read(const struct gguf *file)
{
    bool found = true;
    for (size_t i = 0; i < gguf_key_count(file); i++) {
        const char *key = gguf_key_at(file, i);
        found = found && gguf_has(file, key);
        read_single(file, key);
        read_array(file, key);
    }
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct stored_tensor *tensor = gguf_tensor_at(file, i);
        found = found && gguf_tensor(file, tensor->name) == tensor;
        read_tensor(tensor);
    }
    return found;
}
