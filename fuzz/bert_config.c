/* The config.json of a BERT. */
#include "model/bert_config.h"

#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct bert_config config;
    fuzz_write("config.json", data, size);
    if (!bert_config_read(&config, fuzz_folder(), &error))
        return 0;
    REQUIRE(config.layers > 0 && config.heads > 0 && config.hidden % config.heads == 0);
    return 0;
}
