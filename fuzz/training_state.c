/* What a training that goes on reads before its tensors. */
#include "train/state.h"

#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct training_file *file;
    struct training_state state;
    fuzz_write("training.safetensors", data, size);
    if (!training_file_open(&file, fuzz_folder(), &state, &error))
        return 0;
    REQUIRE(state.step >= 0 && state.tokens >= 0 && state.corpus_size >= 0);
    training_file_close(file);
    return 0;
}
