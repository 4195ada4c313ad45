/* What the tests of src/text share. */
#ifndef ATTN_TESTS_TOKENIZER_TEST_H
#define ATTN_TESTS_TOKENIZER_TEST_H

#include <jansson.h>
#include <stdbool.h>

#include "cmocka_test.h"
#include "test_data.h"
#include "text/tokenizer.h"

/* Calls `run` for each handed case of tests/data/cases/tokenizer.json with this operation, at least
 * one. */
void for_each_case(const char *operation,
                   void (*run)(const json_t *input, const json_t *expected, void *user),
                   void *user);

/* tokenizer.json of tests/data/golden/tokenizer_small.json with the fields of `change` (NULL for
 * none) in place of its own. */
json_t *small_description(const json_t *change);

/* The same of tokenizer_bytes.json, which is byte-level BPE. */
json_t *bytes_description(const json_t *change);

/* Both with the fields of a JSON text. */
json_t *small_description_with(const char *change);
json_t *bytes_description_with(const char *change);

/* Fails the test unless the description is refused in these words. */
void assert_description_refused(const json_t *description, const char *words);

/* Opens a folder that holds this description as tokenizer.json. `open_description` fails the test
 * where that fails. */
bool try_description(const json_t *description, struct tokenizer **tokenizer,
                     struct attn_error *error);
struct tokenizer *open_description(const json_t *description);

/* The same with the bytes of tokenizer.json. */
bool try_text(const char *text, size_t size, struct tokenizer **tokenizer,
              struct attn_error *error);

/* Replaces one byte of the description's text, at every `step`-th place: it opens, or is refused
 * with a message. */
void assert_flipped_bytes(const json_t *description, size_t step);

/* The small tokenizer, and the byte-level one, with the fields of a JSON text, NULL for none. */
struct tokenizer *open_small(const char *change);
struct tokenizer *open_bytes(const char *change);

/* Encodes the text of each golden answer, at least one, and compares all that it says. */
void assert_answers(const struct tokenizer *tokenizer, const json_t *answers);

/* The tokenizer of the model in $ATTN_TEST_MODEL; skips the test where that is not set. */
struct tokenizer *open_model(void);

/* Encodes; fails the test where that fails. pair may be NULL. */
struct encoding encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                       const char *pair, size_t pair_size, enum special_spelling specials);

/* Encodes a text, and compares its pieces with `expected`, where spaces part them. */
void assert_pieces(const struct tokenizer *tokenizer, const char *text, const char *expected);

/* The same with a pair, and special spellings read so. */
void assert_pair_pieces(const struct tokenizer *tokenizer, const char *text, const char *pair,
                        enum special_spelling specials, const char *expected);

/* A text of the data files: a string, or {"repeat": [[text, times], …]} or one [text, times]. */
char *expand_text(const json_t *text, size_t *size);

#endif
