/* An index of shards, beside two shards that are sound. */
#include "format/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "fuzz_target.h"

static void write_shard(const char *name, const char *tensor)
{
    char header[128] = {0};
    size_t size = (size_t)snprintf(
        header + 8, sizeof header - 8,
        "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", tensor);
    header[0] = (char)size;
    fuzz_write(name, (const uint8_t *)header, 8 + size + 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool prepared;
    if (!prepared) {
        write_shard("model-00001-of-00002.safetensors", "a");
        write_shard("model-00002-of-00002.safetensors", "b");
        prepared = true;
    }
    fuzz_write("model.safetensors.index.json", data, size);
    struct attn_error error;
    struct checkpoint *checkpoint;
    if (!checkpoint_open(&checkpoint, fuzz_folder(), &error))
        return 0;
    for (size_t i = 0; i < checkpoint_count(checkpoint); i++) {
        const struct stored_tensor *tensor = checkpoint_at(checkpoint, i);
        REQUIRE(checkpoint_find(checkpoint, tensor->name) == tensor);
        REQUIRE(strcmp(tensor->name, "a") == 0 || strcmp(tensor->name, "b") == 0);
    }
    checkpoint_close(checkpoint);
    return 0;
}
