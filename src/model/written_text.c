#include "model/written_text.h"

#include <string.h>

/* Forgets what was shown. */
static void begin(struct written_text *text)
{
    if (text->shown == 0)
        return;
    text->held.size -= text->shown;
    memmove(text->held.data, text->held.data + text->shown, text->held.size);
    text->held.data[text->held.size] = '\0';
    text->shown = 0;
}

/* Where the first stop string begins; the text's size where there is none. */
static size_t find_stop(const struct attn_buffer *held, const struct stop_strings *stops)
{
    for (size_t place = 0; place < held->size; place++)
        for (size_t n = 0; n < stops->count; n++) {
            const size_t size = strlen(stops->strings[n]);
            if (size <= held->size - place &&
                memcmp(held->data + place, stops->strings[n], size) == 0)
                return place;
        }
    return held->size;
}

/* How many bytes at the end begin a stop string that is not there yet. */
static size_t count_waiting(const struct attn_buffer *held, const struct stop_strings *stops)
{
    size_t longest = 0;
    for (size_t n = 0; n < stops->count; n++) {
        size_t size = strlen(stops->strings[n]) - 1;
        if (size > held->size)
            size = held->size;
        while (size > longest &&
               memcmp(held->data + held->size - size, stops->strings[n], size) != 0)
            size--;
        if (size > longest)
            longest = size;
    }
    return longest;
}

bool written_text_add(struct written_text *text, const char *bytes, size_t size,
                      const struct stop_strings *stops)
{
    begin(text);
    utf8_stream_add(&text->stream, bytes, size, &text->held);
    const size_t stop = find_stop(&text->held, stops);
    if (stop < text->held.size) {
        text->stopped = true;
        text->held.size = stop;
        text->held.data[stop] = '\0';
        text->stream = (struct utf8_stream){0};
        text->shown = stop;
    } else {
        text->shown = stop - count_waiting(&text->held, stops);
    }
    return !text->held.failed;
}

bool written_text_end(struct written_text *text)
{
    begin(text);
    utf8_stream_end(&text->stream, &text->held);
    text->shown = text->held.size;
    return !text->held.failed;
}

void written_text_release(struct written_text *text)
{
    attn_buffer_release(&text->held);
    *text = (struct written_text){0};
}
