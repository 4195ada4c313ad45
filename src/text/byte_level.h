/* Byte-level text (A. Radford et al., "Language models are unsupervised multitask learners"
 * (2019)): a letter for each byte, so that any text can be spelled, and the pattern that splits it.
 */
#ifndef ATTN_TEXT_BYTE_LEVEL_H
#define ATTN_TEXT_BYTE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { BYTE_LEVEL_BYTES = 256, BYTE_LEVEL_NO_BYTE = -1 };

/* The code point that spells a byte in vocabularies: printable signs of Latin-1 spell themselves,
 * the other 68 bytes follow from U+0100 in order. */
uint32_t byte_level_code_point(unsigned char byte);

/* The byte that a code point spells, BYTE_LEVEL_NO_BYTE for any other. */
int byte_level_byte(uint32_t code_point);

/* Bytes in the order of their code points, as GPT-2 numbers them; 0 ≤ rank < BYTE_LEVEL_BYTES. */
unsigned char byte_level_ordered(int rank);

/* Appends the spelling of bytes. */
void byte_level_spell(const char *bytes, size_t size, struct attn_buffer *out);

/* Appends the bytes of a spelling, valid UTF-8; where a code point spells none, the spelling as it
 * is. */
void byte_level_read(const char *spelling, size_t size, struct attn_buffer *out);

/* Where the word ends that begins at text[begin], begin < size; the text is valid UTF-8. The
 * pattern is GPT-2's, and each byte of a text belongs to a word:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t byte_level_word_end(const char *text, size_t size, size_t begin);

#endif
