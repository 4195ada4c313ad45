/* What a GGUF file says of a model: its settings and weights, its tokenizer, its manners. */
#include "fuzz_target.h"
#include "model/causal_model.h"

static void open_model(const struct model_source *source)
{
    struct attn_error error;
    struct causal_settings settings;
    struct causal_model *model;
    causal_model_read_settings(&settings, source, &error);
    if (causal_model_open(&model, source, &error))
        causal_model_close(model);
}

static void open_tokenizer(const struct model_source *source, const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct tokenizer *tokenizer;
    if (!model_source_tokenizer(source, &tokenizer, &error))
        return;
    fuzz_use_tokenizer(tokenizer, data, size);
    tokenizer_close(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct model_source *source;
    if (!model_source_open(&source, fuzz_write("model.gguf", data, size), &error))
        return 0;
    open_model(source);
    open_tokenizer(source, data, size);
    struct model_manners manners;
    if (model_source_manners(source, &manners, &error))
        model_manners_release(&manners);
    model_source_close(source);
    return 0;
}
