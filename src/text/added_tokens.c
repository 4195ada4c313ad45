#include "text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "text/unicode.h"

bool added_tokens_push(struct added_tokens *set, const struct added_token *token)
{
    if (set->count == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 8;
        if (capacity > SIZE_MAX / sizeof *set->tokens)
            return false;
        struct added_token *tokens = realloc(set->tokens, capacity * sizeof *tokens);
        if (!tokens)
            return false;
        set->tokens = tokens;
        set->capacity = capacity;
    }
    char *spelling = malloc(token->length + 1);
    if (!spelling)
        return false;
    memcpy(spelling, token->spelling, token->length);
    spelling[token->length] = '\0';
    set->tokens[set->count] = *token;
    set->tokens[set->count++].spelling = spelling;
    return true;
}

static int compare_spellings(const void *a, const void *b)
{
    const struct added_token *left = a, *right = b;
    size_t shorter = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->spelling, right->spelling, shorter);
    return order ? order : (left->length > right->length) - (left->length < right->length);
}

const struct added_token *added_tokens_seal(struct added_tokens *set)
{
    if (set->count == 0)
        return NULL;
    qsort(set->tokens, set->count, sizeof *set->tokens, compare_spellings);
    for (size_t i = 1; i < set->count; i++)
        if (compare_spellings(&set->tokens[i - 1], &set->tokens[i]) == 0)
            return &set->tokens[i];
    return NULL;
}

void added_tokens_release(struct added_tokens *set)
{
    for (size_t i = 0; i < set->count; i++)
        free((char *)set->tokens[i].spelling);
    free(set->tokens);
    memset(set, 0, sizeof *set);
}

/* The first of tokens[low..high) whose byte at `depth` is at least `byte`; all of them share the
 * bytes before, and one that ends there comes first. */
static size_t lower_bound(const struct added_tokens *set, size_t low, size_t high, size_t depth,
                          int byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct added_token *token = &set->tokens[middle];
        if (token->length <= depth || (unsigned char)token->spelling[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token at the beginning of text: the sorted list is walked like a trie. */
static const struct added_token *longest_at(const struct added_tokens *set, const char *text,
                                            size_t size)
{
    const struct added_token *longest = NULL;
    size_t low = 0, high = set->count;
    for (size_t depth = 0; depth < size; depth++) {
        int byte = (unsigned char)text[depth];
        low = lower_bound(set, low, high, depth, byte);
        high = lower_bound(set, low, high, depth, byte + 1);
        if (low == high)
            break;
        if (set->tokens[low].length == depth + 1)
            longest = &set->tokens[low];
    }
    return longest;
}

static bool is_single_word(const char *text, size_t size, size_t begin, size_t end)
{
    size_t next;
    if (begin > 0 &&
        unicode_is_word_character(utf8_decode(text, size, utf8_previous(text, begin), &next)))
        return false;
    return end == size || !unicode_is_word_character(utf8_decode(text, size, end, &next));
}

static size_t space_before(const char *text, size_t size, size_t from, size_t at)
{
    while (at > from) {
        size_t next, previous = utf8_previous(text, at);
        if (!unicode_is_space(utf8_decode(text, size, previous, &next)))
            break;
        at = previous;
    }
    return at;
}

static size_t space_behind(const char *text, size_t size, size_t at)
{
    size_t next = at;
    while (at < size && unicode_is_space(utf8_decode(text, size, at, &next)))
        at = next;
    return at;
}

bool added_tokens_next(const struct added_tokens *set, bool plain, const char *text, size_t size,
                       struct added_search *search, struct added_match *match)
{
    if (set->count == 0)
        return false;
    while (search->at < size) {
        size_t begin = search->at;
        const struct added_token *token = longest_at(set, text + begin, size - begin);
        if (!token) {
            search->at++;
            continue;
        }
        size_t end = begin + token->length;
        search->at = end;
        if (plain && token->special)
            continue;
        if (token->single_word && !is_single_word(text, size, begin, end))
            continue;
        if (token->lstrip)
            begin = space_before(text, size, search->done, begin);
        if (token->rstrip)
            end = space_behind(text, size, end);
        if (begin < search->done) /* white space that the token before has taken stays its own */
            begin = search->done;
        if (begin >= end)
            continue;
        *match = (struct added_match){token->id, begin, end};
        search->done = end;
        return true;
    }
    return false;
}
