/* Tokens that are cut out of a text before the model sees it: "[MASK]" and whatever was added to a
 * vocabulary. */
#ifndef ATTN_TEXT_ADDED_TOKENS_H
#define ATTN_TEXT_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct added_token {
    const char *spelling; /* not empty; NUL-terminated; a set owns its own */
    size_t length;
    int32_t id;
    bool special;     /* left out when special spellings are to be read as letters */
    bool single_word; /* found only where no word character touches it */
    bool lstrip;      /* takes the white space before it too */
    bool rstrip;      /* and behind it */
};

/* Start from zeros. */
struct added_tokens {
    struct added_token
        *tokens; /* [count], ascending by spelling once sealed; all spellings differ */
    size_t count, capacity;
};

/* Adds a copy. False when there is no memory. */
bool added_tokens_push(struct added_tokens *set, const struct added_token *token);

/* Makes the set ready for searching. Returns the token whose spelling is there twice, NULL for
 * none. */
const struct added_token *added_tokens_seal(struct added_tokens *set);

void added_tokens_release(struct added_tokens *set);

/* A search through one text. Start from zeros. */
struct added_search {
    size_t at;   /* where to look on */
    size_t done; /* end of what the matches so far have taken */
};

struct added_match {
    int32_t id;
    size_t begin, end; /* with the white space that it takes */
};

/* The next match in text[0..size), which is valid UTF-8: leftmost, and of those the longest. False
 * when there is none. A match that is then discarded (special with plain, or not a single word)
 * still hides what it overlaps, as in the reference. */
bool added_tokens_next(const struct added_tokens *set, bool plain, const char *text, size_t size,
                       struct added_search *search, struct added_match *match);

#endif
