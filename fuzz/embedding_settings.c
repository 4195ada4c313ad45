/* What a sentence-transformers directory says about pooling; a module whose path is "." has its
 * config.json beside modules.json. */
#include "fuzz_target.h"
#include "model/embedding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"modules.json", "config.json"};
    fuzz_write_parts(names, sizeof names / sizeof *names, data, size);
    struct attn_error error;
    struct embedding_settings settings;
    embedding_settings_read(&settings, fuzz_folder(), &error);
    return 0;
}
