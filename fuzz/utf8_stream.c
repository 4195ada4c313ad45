/* Bytes in pieces: what is shown is UTF-8, does not depend on the pieces, and is the input where
 * that is UTF-8 itself. */
#include "text/utf8_stream.h"

#include <string.h>

#include "fuzz_target.h"
#include "text/unicode.h"

/* That what came to `out` behind its first `begin` bytes is UTF-8. */
static void require_text(const struct attn_buffer *out, size_t begin)
{
    size_t size = out->size - begin;
    REQUIRE(size == 0 || utf8_invalid_offset(out->data + begin, size) == size);
}

static void show(const char *text, size_t size, size_t piece, struct attn_buffer *out)
{
    struct utf8_stream stream = {0};
    for (size_t begin = 0; begin < size; begin += piece) {
        size_t shown = out->size;
        utf8_stream_add(&stream, text + begin, size - begin < piece ? size - begin : piece, out);
        require_text(out, shown);
    }
    size_t shown = out->size;
    utf8_stream_end(&stream, out);
    require_text(out, shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct attn_buffer whole = {0};
    show(text, size, size + 1, &whole);
    if (size > 0 && utf8_invalid_offset(text, size) == size)
        REQUIRE(whole.size == size && memcmp(whole.data, text, size) == 0);
    for (size_t piece = 1; piece <= 3; piece++) {
        struct attn_buffer pieces = {0};
        show(text, size, piece, &pieces);
        REQUIRE(pieces.size == whole.size &&
                (whole.size == 0 || memcmp(pieces.data, whole.data, whole.size) == 0));
        attn_buffer_release(&pieces);
    }
    attn_buffer_release(&whole);
    return 0;
}
