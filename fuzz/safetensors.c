/* A safetensors file. */
#include "format/safetensors.h"

#include <string.h>

#include "fuzz_target.h"

static void read_tensor(const struct stored_tensor *tensor)
{
    struct attn_error error;
    unsigned char *bytes = malloc(tensor->size + 1);
    float *floats = malloc(((size_t)tensor->elements + 1) * sizeof *floats);
    REQUIRE(bytes && floats);
    memcpy(bytes, tensor->data, tensor->size);
    stored_tensor_to_floats(tensor, floats, &error);
    free(floats);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct safetensors *file;
    if (!safetensors_open(&file, fuzz_write("model.safetensors", data, size), &error))
        return 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct stored_tensor *tensor = safetensors_at(file, i);
        REQUIRE(safetensors_find(file, tensor->name) == tensor);
        read_tensor(tensor);
    }
    safetensors_metadata(file, "format");
    safetensors_close(file);
    return 0;
}
