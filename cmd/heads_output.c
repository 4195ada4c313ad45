#include "heads_output.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "heads_options.h"
#include "output.h"

static bool write_file(const struct heads_options *options, const struct attn_buffer *content,
                       struct attn_error *error)
{
    const char *path = options->shared.output;
    if (content->failed)
        return attn_error_memory(error);
    if (!attn_file_write(path, content->data, content->size, error))
        return false;
    if (progress_is_shown())
        fprintf(stderr, "attn heads: wrote %s\n", path);
    return true;
}

bool heads_output(const struct heads_options *options, heads_render *render, const void *report,
                  struct attn_error *error)
{
    const bool json = options->shared.json, file = options->shared.output != NULL;
    struct attn_buffer out = {0};
    bool done = true;
    if (file) {
        render(report, options->o_form, &out);
        done = write_file(options, &out, error);
    }
    if (done && (json || options->csv || !file)) {
        attn_buffer_clear(&out);
        render(report, json ? HEADS_JSON : options->csv ? HEADS_CSV : HEADS_TABLE, &out);
        done = output_write(&out, error);
    }
    attn_buffer_release(&out);
    return done;
}

/* Characters, of which each takes one column in these tables. */
static size_t count_characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static void add_spaces(size_t count, struct attn_buffer *out)
{
    for (size_t n = 0; n < count; n++)
        attn_buffer_add(out, " ", 1);
}

void heads_add_right(const char *text, size_t width, struct attn_buffer *out)
{
    const size_t length = count_characters(text);
    add_spaces(2 + (length < width ? width - length : 0), out);
    attn_buffer_add_text(out, text);
}

void heads_add_left(const char *text, size_t width, struct attn_buffer *out)
{
    const size_t length = count_characters(text);
    attn_buffer_add_text(out, text);
    add_spaces(length < width ? width - length : 0, out);
}
