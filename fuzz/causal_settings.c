/* The config.json of a model that writes: of a Llama, or a GPT-2 as that reader takes it. */
#include "fuzz_target.h"
#include "model/causal_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct model_source *source;
    struct causal_settings settings;
    fuzz_write("config.json", data, size);
    if (!model_source_open(&source, fuzz_folder(), &error))
        return 0;
    if (causal_model_read_settings(&settings, source, &error))
        REQUIRE(settings.layers > 0 && settings.key_heads > 0 &&
                settings.heads % settings.key_heads == 0 && settings.head_size > 0);
    model_source_close(source);
    return 0;
}
