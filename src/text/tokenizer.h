/* Text to the token ids of a model, and back to what stands where in the text: WordPiece as BERT
 * has it, or byte-level BPE as GPT-2 has it, as the directory says.
 *
 * Follows the reference tokenizer (Hugging Face's tokenizers) id for id: special tokens are cut out
 * of the raw text, the rest is normalised (BertNormalizer), split into words (BertPreTokenizer),
 * and each word into pieces by greedy longest match (WordPiece); or it is split as it is by GPT-2's
 * pattern (ByteLevel), as SmolLM2 has it with all digits cut off before (Digits), and each word's
 * bytes are merged pair by pair (BPE). */
#ifndef ATTN_TEXT_TOKENIZER_H
#define ATTN_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct tokenizer;

/* Reads DIRECTORY/tokenizer.json; where there is none vocab.txt (with do_lower_case, strip_accents,
 * tokenize_chinese_chars of tokenizer_config.json where that is there); and where that is missing
 * too, vocab.json and merges.txt of GPT-2 (with add_prefix_space of tokenizer_config.json).
 * Truncation and padding settings are ignored. A component that is not implemented is refused by
 * name. */
bool tokenizer_open(struct tokenizer **tokenizer, const char *directory, struct attn_error *error);
void tokenizer_close(struct tokenizer *tokenizer); /* NULL is allowed */

enum { TOKEN_NO_WORD = -1 };

struct token {
    int32_t id;
    int32_t type; /* 0 for the first text, 1 for the pair (what follows it up to its [SEP]) */
    int32_t text; /* which text begin and end point into: 0, 1, or −1 for an added token */
    int32_t word; /* its word, or TOKEN_NO_WORD for one that the template added ([CLS], [SEP]) */
    size_t begin, end; /* bytes of that text as it was given, characters whole */
};

/* What the pre-tokenizer splits, of at least one token. A special token that stands in the text is
 * a word of its own. A word of byte pairs begins with the space before it, where it has one. */
struct word {
    int32_t text;
    size_t begin, end; /* bytes of that text as it was given */
};

struct encoding {
    struct token *tokens;
    size_t token_count;
    struct word *words; /* in order, the first text's before the pair's */
    size_t word_count;

    /* Bytes that the vocabulary has no piece for and that are left out, as in the reference: a text
     * with such cannot come back whole. Tokens behind them keep their true place, which the
     * reference loses. */
    size_t dropped_count;
    unsigned char first_dropped; /* where dropped_count > 0 */
};

enum special_spelling {
    SPECIAL_READ, /* "[MASK]" in a text is the mask token */
    SPECIAL_PLAIN /* it is a bracket, a word and a bracket: for text that is not trusted */
};

struct tokenizer_input {
    const char *text; /* UTF-8; may hold NUL bytes */
    size_t text_size;
    const char *pair; /* NULL for none */
    size_t pair_size;
    enum special_spelling specials;
};

/* Encodes one text or pair, special tokens of the template added, nothing cut or padded. Invalid
 * UTF-8 is refused, naming the byte, and so is a text of more than INT32_MAX bytes. Release with
 * encoding_release; on failure nothing is held. A tokenizer may be used by many threads at once. */
bool tokenizer_encode(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                      struct encoding *encoding, struct attn_error *error);
void encoding_release(struct encoding *encoding);

/* The vocabulary's spelling of an id ("##driver"), NULL for an id that it has not. */
const char *tokenizer_piece(const struct tokenizer *tokenizer, int32_t id);

/* One more than the largest id. */
int32_t tokenizer_size(const struct tokenizer *tokenizer);

enum tokenizer_kind { TOKENIZER_WORD_PIECE, TOKENIZER_BYTE_PAIR };
enum tokenizer_kind tokenizer_get_kind(const struct tokenizer *tokenizer);

/* The id of an added token by its spelling ("[MASK]", "<|endoftext|>"), −1 where there is none. */
int32_t tokenizer_special(const struct tokenizer *tokenizer, const char *spelling);

/* The bytes that ids stand for, appended to `text`: byte-level BPE gives back what was encoded;
 * WordPiece joins pieces and separates words by spaces. Special tokens are left out. Bytes of a
 * character that is cut are kept as they are: the caller waits for the rest or drops them. An id
 * that is not in the vocabulary is refused, and nothing appended. */
bool tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                      struct attn_buffer *text, struct attn_error *error);

#endif
