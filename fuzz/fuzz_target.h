/* What the fuzz targets share: libFuzzer calls LLVMFuzzerTestOneInput with bytes that it changes to
 * reach new code, and a sanitizer or a failed REQUIRE ends the process. Readers take paths, so that
 * inputs are written into a folder of the process's own under $TMPDIR or /tmp, removed at its end.
 */
#ifndef ATTN_FUZZ_TARGET_H
#define ATTN_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A law that a reader must keep for any input. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* The folder; always the same. */
const char *fuzz_folder(void);

/* Writes FOLDER/NAME and returns its path, which stands until the next call. */
const char *fuzz_write(const char *name, const uint8_t *data, size_t size);

/* Writes several files, the parts of the input between its NUL bytes; the last file takes what is
 * left, and of files without a part there is none. */
void fuzz_write_parts(const char *const *names, size_t count, const uint8_t *data, size_t size);

/* Encodes a text of its own and `text`, and decodes what comes. */
void fuzz_use_tokenizer(const struct tokenizer *tokenizer, const uint8_t *text, size_t size);

/* A tokenizer that has all bytes, a few merges, and the markers of ChatML; `splits` is the name of
 * its pre-tokenizer. */
struct tokenizer *fuzz_byte_tokenizer(const char *splits);

#endif
