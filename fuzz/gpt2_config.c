/* The config.json of a GPT-2. */
#include "model/gpt2_config.h"

#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct gpt2_config config;
    fuzz_write("config.json", data, size);
    if (!gpt2_config_read(&config, fuzz_folder(), &error))
        return 0;
    REQUIRE(config.layers > 0 && config.heads > 0 && config.hidden % config.heads == 0);
    return 0;
}
