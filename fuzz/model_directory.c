/* A directory of config.json and weights, opened as each kind of model. */
#include "fuzz_target.h"
#include "model/bert.h"
#include "model/causal_model.h"

static void open_causal(void)
{
    struct attn_error error;
    struct model_source *source;
    struct causal_model *model;
    if (!model_source_open(&source, fuzz_folder(), &error))
        return;
    if (causal_model_open(&model, source, &error))
        causal_model_close(model);
    model_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"config.json", "model.safetensors"};
    fuzz_write_parts(names, sizeof names / sizeof *names, data, size);
    struct attn_error error;
    struct bert *bert;
    if (bert_open(&bert, fuzz_folder(), &error))
        bert_close(bert);
    open_causal();
    return 0;
}
