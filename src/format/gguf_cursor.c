#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf_file.h"
#include "format/stored_number.h"

static bool refuse_end(const struct gguf_cursor *cursor)
{
    return attn_error_set(cursor->error, "%s: the file ends inside the %s", cursor->path,
                          cursor->part);
}

const unsigned char *gguf_take(struct gguf_cursor *cursor, size_t size)
{
    if (size > cursor->left) {
        refuse_end(cursor);
        return NULL;
    }
    const unsigned char *bytes = cursor->next;
    cursor->next += size;
    cursor->left -= size;
    return bytes;
}

bool gguf_take_u32(struct gguf_cursor *cursor, uint32_t *number)
{
    const unsigned char *bytes = gguf_take(cursor, 4);
    if (!bytes)
        return false;
    *number = stored_u32(bytes);
    return true;
}

bool gguf_take_u64(struct gguf_cursor *cursor, uint64_t *number)
{
    const unsigned char *bytes = gguf_take(cursor, 8);
    if (!bytes)
        return false;
    *number = stored_u64(bytes);
    return true;
}

bool gguf_take_string(struct gguf_cursor *cursor, struct gguf_string *string)
{
    uint64_t size;
    if (!gguf_take_u64(cursor, &size))
        return false;
    if (size > cursor->left)
        return attn_error_set(cursor->error,
                              "%s: a string of %" PRIu64 " bytes is beyond the end of the file",
                              cursor->path, size);
    string->text = (const char *)gguf_take(cursor, (size_t)size);
    string->size = (size_t)size;
    return true;
}

bool gguf_take_name(struct gguf_cursor *cursor, char **name)
{
    struct gguf_string string;
    if (!gguf_take_string(cursor, &string))
        return false;
    if (memchr(string.text, '\0', string.size))
        return attn_error_set(cursor->error, "%s: a name in the %s has a NUL in it", cursor->path,
                              cursor->part);
    *name = malloc(string.size + 1);
    if (!*name)
        return attn_error_memory(cursor->error);
    memcpy(*name, string.text, string.size);
    (*name)[string.size] = '\0';
    return true;
}

bool gguf_check_count(const struct gguf_cursor *cursor, uint64_t count, size_t least_size)
{
    return count <= cursor->left / least_size || refuse_end(cursor);
}
