/* A GGUF file: every value by each reading, every tensor. */
#include "format/gguf.h"

#include "fuzz_target.h"
#include "gguf_contents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct gguf *file;
    if (!gguf_open(&file, fuzz_write("model.gguf", data, size), &error))
        return 0;
    REQUIRE(gguf_contents_read(file));
    gguf_close(file);
    return 0;
}
