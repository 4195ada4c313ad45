#include "text/utf8_stream.h"

#include "text/unicode.h"

static const char replacement[] = "\xEF\xBF\xBD";

/* Bytes of the character that a byte begins, 0 for a byte that begins none. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Whether a byte may stand behind the `count` ≥ 1 bytes that wait. The second byte is limited so
 * that there are no overlong forms, no surrogates, and nothing above U+10FFFF (table 3-7 of the
 * Unicode standard). */
static bool continues(const unsigned char *waiting, size_t count, unsigned char byte)
{
    unsigned char low = 0x80, high = 0xBF;
    if (count == 1) {
        if (waiting[0] == 0xE0)
            low = 0xA0;
        else if (waiting[0] == 0xED)
            high = 0x9F;
        else if (waiting[0] == 0xF0)
            low = 0x90;
        else if (waiting[0] == 0xF4)
            high = 0x8F;
    }
    return byte >= low && byte <= high;
}

static void begin(struct utf8_stream *stream, unsigned char byte, struct attn_buffer *out)
{
    size_t length = length_of(byte);
    if (length == 0)
        attn_buffer_add_text(out, replacement);
    else if (length == 1)
        attn_buffer_add(out, &byte, 1);
    else
        stream->waiting[stream->count++] = byte;
}

void utf8_stream_add(struct utf8_stream *stream, const char *bytes, size_t size,
                     struct attn_buffer *out)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (stream->count > 0 && !continues(stream->waiting, stream->count, byte))
            utf8_stream_end(stream, out);
        if (stream->count == 0) {
            begin(stream, byte, out);
            continue;
        }
        stream->waiting[stream->count++] = byte;
        if (stream->count == length_of(stream->waiting[0])) {
            attn_buffer_add(out, stream->waiting, stream->count);
            stream->count = 0;
        }
    }
}

void utf8_stream_end(struct utf8_stream *stream, struct attn_buffer *out)
{
    if (stream->count > 0)
        attn_buffer_add_text(out, replacement);
    stream->count = 0;
}
