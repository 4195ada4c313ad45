#include "text/alphabet.h"

#include <stdlib.h>
#include <string.h>

#include "text/unicode.h"

enum { CODE_POINTS = 0x110000 };

struct letter_count {
    uint64_t times;
    bool is_inner;
};

static void count_letters(const struct text_table *words, struct letter_count *counts)
{
    for (uint32_t i = 0; i < words->count; i++) {
        size_t size;
        const char *word = text_table_get(words, i, &size);
        for (size_t at = 0, next; at < size; at = next) {
            struct letter_count *count = &counts[utf8_decode(word, size, at, &next)];
            count->times += words->entries[i].times;
            count->is_inner = count->is_inner || at > 0;
        }
    }
}

/* The letters that are there, by code point. */
static bool list_letters(struct alphabet *alphabet, const struct letter_count *counts)
{
    size_t count = 0;
    for (uint32_t code_point = 0; code_point < CODE_POINTS; code_point++)
        count += counts[code_point].times > 0;
    alphabet->letters = malloc((count ? count : 1) * sizeof *alphabet->letters);
    if (!alphabet->letters)
        return false;
    for (uint32_t code_point = 0; code_point < CODE_POINTS; code_point++)
        if (counts[code_point].times > 0)
            alphabet->letters[alphabet->count++] =
                (struct letter){code_point, counts[code_point].times, counts[code_point].is_inner,
                                ALPHABET_NO_ID, ALPHABET_NO_ID};
    return true;
}

static int by_code_point(const void *a, const void *b)
{
    const struct letter *left = a, *right = b;
    return left->code_point < right->code_point ? -1 : left->code_point > right->code_point;
}

static int by_times(const void *a, const void *b)
{
    const struct letter *left = a, *right = b;
    if (left->times != right->times)
        return left->times > right->times ? -1 : 1;
    return by_code_point(a, b);
}

/* Keeps the most frequent letters that have room. */
static void choose(struct alphabet *alphabet, size_t room)
{
    if (alphabet->count == 0)
        return;
    qsort(alphabet->letters, alphabet->count, sizeof *alphabet->letters, by_times);
    size_t kept = 0;
    for (size_t used = 0; kept < alphabet->count; kept++) {
        used += alphabet->letters[kept].is_inner ? 2 : 1;
        if (used > room)
            break;
    }
    alphabet->count = kept;
    if (kept > 0)
        qsort(alphabet->letters, kept, sizeof *alphabet->letters, by_code_point);
}

static bool add_piece(struct text_table *pieces, const char *prefix, uint32_t code_point,
                      int32_t *id)
{
    char spelling[ALPHABET_PREFIX_LIMIT + UTF8_LIMIT];
    size_t length = strlen(prefix);
    memcpy(spelling, prefix, length);
    length += (size_t)utf8_encode(code_point, spelling + length);
    uint32_t index;
    if (!text_table_add(pieces, spelling, length, 1, &index))
        return false;
    *id = (int32_t)index;
    return true;
}

static bool add_pieces(struct alphabet *alphabet, const char *prefix, struct text_table *pieces)
{
    struct letter *letters = alphabet->letters;
    for (size_t i = 0; i < alphabet->count; i++)
        if (!add_piece(pieces, "", letters[i].code_point, &letters[i].id))
            return false;
    for (size_t i = 0; i < alphabet->count; i++)
        if (letters[i].is_inner &&
            !add_piece(pieces, prefix, letters[i].code_point, &letters[i].inner))
            return false;
    return true;
}

bool alphabet_create(struct alphabet *alphabet, const struct text_table *words, size_t room,
                     const char *prefix, struct text_table *pieces)
{
    struct letter_count *counts = calloc(CODE_POINTS, sizeof *counts);
    if (!counts)
        return false;
    count_letters(words, counts);
    bool done = list_letters(alphabet, counts);
    free(counts);
    if (!done)
        return false;
    choose(alphabet, room);
    return add_pieces(alphabet, prefix, pieces);
}

void alphabet_release(struct alphabet *alphabet)
{
    free(alphabet->letters);
    memset(alphabet, 0, sizeof *alphabet);
}

int32_t alphabet_find(const struct alphabet *alphabet, uint32_t code_point, bool is_inner)
{
    if (alphabet->count == 0)
        return ALPHABET_NO_ID;
    const struct letter wanted = {.code_point = code_point};
    const struct letter *found = bsearch(&wanted, alphabet->letters, alphabet->count,
                                         sizeof *alphabet->letters, by_code_point);
    if (!found)
        return ALPHABET_NO_ID;
    return is_inner ? found->inner : found->id;
}
