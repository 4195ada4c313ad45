/* Tokenizers learned from a text, in time that grows little faster than it. Merges are those of the
 * reference trainer (Hugging Face's tokenizers), and the same text gives the same bytes.
 *
 * Refused: a size below the least or of VOCABULARY_ID_LIMIT and more, a text that is not UTF-8 (the
 * error names the byte), and one whose different words have more than 2³⁰ letters. After a failure
 * what is in `json` has no meaning. */
#ifndef ATTN_TEXT_TOKENIZER_TRAIN_H
#define ATTN_TEXT_TOKENIZER_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* What byte-level BPE and WordPiece need at least. */
enum {
    BYTE_PAIR_SMALLEST = 257, /* 256 bytes and <|endoftext|> */
    WORD_PIECE_SPECIALS = 5   /* [PAD], [UNK], [CLS], [SEP], [MASK] */
};

/* Byte-pair encoding on bytes (R. Sennrich et al., 2016; A. Radford et al., 2019): the words of
 * GPT-2's pre-tokenizer, merged pair by most frequent pair (ties: the smaller pair of ids first)
 * until the vocabulary has `size` entries, or no pair stands twice. size = BYTE_PAIR_SMALLEST is
 * bytes alone. `json` gets a tokenizer.json as Transformers reads it (ByteLevel pre-tokenizer and
 * decoder, <|endoftext|> the last id, added and special). */
bool byte_pair_train(const char *text, size_t text_size, int32_t size, struct attn_buffer *json,
                     struct attn_error *error);

/* WordPiece as BERT's vocabularies are made (the reference trainer's): characters, and with "##"
 * those inside words, merged pair by most frequent pair. Lower case, accents stripped: the
 * normaliser of bert-base-uncased. Where not all characters have room the most frequent ones stay.
 * `json` gets a tokenizer.json with BertNormalizer, BertPreTokenizer, TemplateProcessing. */
bool word_piece_train(const char *text, size_t text_size, int32_t size, struct attn_buffer *json,
                      struct attn_error *error);

#endif
