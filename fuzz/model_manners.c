/* The files that tell a model's end tokens and its chat template. */
#include "fuzz_target.h"
#include "model/model_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"config.json", "generation_config.json",
                                        "tokenizer_config.json", "chat_template.jinja"};
    fuzz_write_parts(names, sizeof names / sizeof *names, data, size);
    struct attn_error error;
    struct model_source *source;
    if (!model_source_open(&source, fuzz_folder(), &error))
        return 0;
    struct model_manners manners;
    if (model_source_manners(source, &manners, &error))
        model_manners_release(&manners);
    model_source_close(source);
    return 0;
}
