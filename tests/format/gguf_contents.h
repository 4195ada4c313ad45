/* Reads everything that an open GGUF file offers, for tests that damage it and for fuzzing. */
#ifndef ATTN_TESTS_GGUF_CONTENTS_H
#define ATTN_TESTS_GGUF_CONTENTS_H

#include "format/gguf.h"

/* Every key by each reading, every tensor as bytes and as floats; false where a key or tensor is
 * not found under its own name. */
bool gguf_contents_read(const struct gguf *file);

#endif
