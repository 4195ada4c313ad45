#include "draw/page_label.h"

#include <string.h>

#include "draw/label.h"

/* `scratch` is reused from text to text. */
static void add_shown(const char *text, size_t size, struct attn_buffer *scratch,
                      struct attn_buffer *out)
{
    attn_buffer_clear(scratch);
    label_show(text, size, scratch);
    if (scratch->failed)
        out->failed = true;
    else
        attn_buffer_add_json_string(out, scratch->data, scratch->size);
}

void page_text_add(const char *text, size_t size, struct attn_buffer *out)
{
    struct attn_buffer scratch = {0};
    if (text)
        add_shown(text, size, &scratch, out);
    else
        attn_buffer_add_text(out, "null");
    attn_buffer_release(&scratch);
}

void page_labels_add(const char *const *labels, size_t count, struct attn_buffer *out)
{
    struct attn_buffer scratch = {0};
    attn_buffer_add_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            attn_buffer_add_text(out, ", ");
        add_shown(labels[i], strlen(labels[i]), &scratch, out);
    }
    attn_buffer_add_text(out, "]");
    attn_buffer_release(&scratch);
}
