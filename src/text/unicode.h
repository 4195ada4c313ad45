/* What the pre-processing of BERT and of GPT-2 asks about one code point.
 *
 * Answers are those of the reference tokenizer, whatever Unicode version the machine's libraries
 * have: a character of a later version than the reference's tables is UNICODE_PLAIN to it.
 * Decompositions, combining classes and lower case come from utf8proc, corrected where the two
 * versions disagree. A code point here is a Unicode scalar value: 0..0x10FFFF without surrogates.
 */
#ifndef ATTN_TEXT_UNICODE_H
#define ATTN_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unicode_class {
    UNICODE_PLAIN,
    UNICODE_PUNCTUATION, /* P*, and all ASCII signs: each is a word of its own */
    UNICODE_MARK,        /* Mn: what stripping accents removes */
    UNICODE_COMBINING,   /* not Mn, but canonical ordering moves it */
    UNICODE_CONTROL /* Cc, Cf, Co less tab, newline and return; NUL and U+FFFD: cleaning removes it
                     */
};

struct unicode_range {
    uint32_t first, last;
    enum unicode_class class;
};

/* Ascending and disjoint. */
extern const struct unicode_range unicode_ranges[];
extern const int unicode_range_count;

enum unicode_class unicode_class_of(uint32_t code_point);

/* The property White_Space. */
bool unicode_is_space(uint32_t code_point);

/* First and last of a run of code points. */
struct unicode_run {
    uint32_t first, last;
};

/* \p{L} and \p{N} of the reference's regular expressions, ascending and disjoint. */
extern const struct unicode_run unicode_letters[], unicode_numbers[];
extern const int unicode_letter_count, unicode_number_count;

/* What a code point is to the pattern by which GPT-2 splits a text. */
enum unicode_kind { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE };

enum unicode_kind unicode_kind_of(uint32_t code_point);

/* Decimal digits and all other numbers, as the pre-tokenizer Digits finds them: its tables are of a
 * later Unicode version than those of the regular expressions. */
bool unicode_is_number(uint32_t code_point);

/* The blocks that BERT sets apart with spaces, character by character. */
bool unicode_is_ideograph(uint32_t code_point);

/* Letters, marks, decimal digits, connectors and joiners: what \w matches in a regular expression.
 * For all but letters it follows utf8proc's Unicode version; it decides only whether an added token
 * that must be a single word is one. */
bool unicode_is_word_character(uint32_t code_point);

enum { UNICODE_DECOMPOSITION_LIMIT = 4 };

/* The full canonical decomposition, not reordered; returns how many code points it has, at least 1.
 */
int unicode_decompose(uint32_t code_point, uint32_t parts[UNICODE_DECOMPOSITION_LIMIT]);

/* The canonical combining class. */
uint8_t unicode_combining_class(uint32_t code_point);

/* The lower case of one character by itself, without regard to its neighbours; returns how many
 * code points it has: 2 for U+0130, else 1. */
int unicode_lowercase(uint32_t code_point, uint32_t lower[2]);

enum { UTF8_LIMIT = 4 };

/* The code point at text[at], and where the next one begins. The text is valid UTF-8 and at < size.
 */
uint32_t utf8_decode(const char *text, size_t size, size_t at, size_t *next);

/* Where the code point begins that ends before text[at]; at > 0. */
size_t utf8_previous(const char *text, size_t at);

/* Returns how many bytes were written. */
int utf8_encode(uint32_t code_point, char bytes[UTF8_LIMIT]);

/* The offset of the first byte that is not valid UTF-8, `size` when there is none. */
size_t utf8_invalid_offset(const char *text, size_t size);

#endif
