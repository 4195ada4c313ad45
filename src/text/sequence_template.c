#include "text/sequence_template.h"

#include <stdlib.h>
#include <string.h>

bool sequence_template_push(struct sequence_template *sequence, struct template_part part)
{
    if (sequence->count == sequence->capacity) {
        size_t capacity = sequence->capacity ? sequence->capacity * 2 : 8;
        if (capacity > SIZE_MAX / sizeof *sequence->parts)
            return false;
        struct template_part *parts = realloc(sequence->parts, capacity * sizeof *parts);
        if (!parts)
            return false;
        sequence->parts = parts;
        sequence->capacity = capacity;
    }
    sequence->parts[sequence->count++] = part;
    return true;
}

void sequence_template_release(struct sequence_template *sequence)
{
    free(sequence->parts);
    memset(sequence, 0, sizeof *sequence);
}

static bool push_all(struct sequence_template *sequence, const struct template_part *parts,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!sequence_template_push(sequence, parts[i]))
            return false;
    return true;
}

bool sequence_template_bert(struct sequence_template *sequence, bool pair, int32_t cls, int32_t sep)
{
    const struct template_part parts[] = {
        {TEMPLATE_TOKEN, cls, 0}, {TEMPLATE_TEXT, 0, 0},    {TEMPLATE_TOKEN, sep, 0},
        {TEMPLATE_PAIR, 0, 1},    {TEMPLATE_TOKEN, sep, 1},
    };
    return push_all(sequence, parts, pair ? 5 : 3);
}

bool sequence_template_bare(struct sequence_template *sequence, bool pair)
{
    const struct template_part parts[] = {{TEMPLATE_TEXT, 0, 0}, {TEMPLATE_PAIR, 0, 1}};
    return push_all(sequence, parts, pair ? 2 : 1);
}
