#include <stdlib.h>
#include <string.h>

#include "text/alphabet.h"
#include "text/bert_normalizer.h"
#include "text/pair_merges.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_train.h"
#include "text/train_check.h"
#include "text/unicode.h"

static const char *const specials[WORD_PIECE_SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                          "[MASK]"};
static const char inner_prefix[] = "##"; /* of a piece that goes on within a word */

/* A text is normalised in stretches of about so many bytes, to keep memory small. */
enum { STRETCH = 1 << 20 };

/* What is made on the way from the text to the file. */
struct training {
    struct text_table words;
    struct text_table pieces; /* numbered as the ids */
    struct alphabet alphabet;
    struct pair_words split;
    struct pair_merges merges;
};

static bool count_words_of(struct text_table *words, const struct normalized_text *normalized)
{
    size_t begin = 0, end;
    uint32_t index;
    for (; pre_tokenizer_next(normalized->bytes, normalized->size, &begin, &end); begin = end)
        if (!text_table_add(words, normalized->bytes + begin, end - begin, 1, &index))
            return false;
    return true;
}

/* The end of a stretch: an ASCII space or newline, which no mark of the next stretch can change. */
static size_t stretch_end(const char *text, size_t size, size_t begin)
{
    size_t end = size - begin > STRETCH ? begin + STRETCH : size;
    while (end < size && text[end] != ' ' && text[end] != '\n')
        end++;
    return end;
}

static bool count_words(struct text_table *words, const char *text, size_t size)
{
    static const struct bert_normalizer settings = {true, true, true, true};
    struct normalized_text normalized = {0};
    bool done = true;
    for (size_t begin = 0, end; done && begin < size; begin = end) {
        end = stretch_end(text, size, begin);
        done = end - begin <= UINT32_MAX &&
               bert_normalize(&settings, text + begin, 0, end - begin, &normalized) &&
               count_words_of(words, &normalized);
    }
    normalized_text_release(&normalized);
    return done;
}

static bool add_specials(struct text_table *pieces)
{
    uint32_t index;
    for (int i = 0; i < WORD_PIECE_SPECIALS; i++)
        if (!text_table_add(pieces, specials[i], strlen(specials[i]), 1, &index))
            return false;
    return true;
}

/* Whether the alphabet has all letters of the word. One that has others is unknown to the tokenizer
 * as a whole: it has nothing to teach. */
static bool can_be_spelled(const struct alphabet *alphabet, const char *word, size_t size)
{
    for (size_t at = 0, next; at < size; at = next)
        if (alphabet_find(alphabet, utf8_decode(word, size, at, &next), at > 0) == ALPHABET_NO_ID)
            return false;
    return true;
}

static bool split_words(const struct text_table *words, const struct alphabet *alphabet,
                        struct pair_words *split)
{
    for (uint32_t i = 0; i < words->count; i++) {
        size_t size;
        const char *word = text_table_get(words, i, &size);
        if (!can_be_spelled(alphabet, word, size))
            continue;
        for (size_t at = 0, next; at < size; at = next) {
            uint32_t code_point = utf8_decode(word, size, at, &next);
            if (!pair_words_push(split, alphabet_find(alphabet, code_point, at > 0)))
                return false;
        }
        if (!pair_words_end(split, words->entries[i].times))
            return false;
    }
    return true;
}

static void add_specials_json(struct attn_buffer *json)
{
    for (int i = 0; i < WORD_PIECE_SPECIALS; i++)
        attn_buffer_format(json,
                           "%s{\"id\":%d,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,"
                           "\"rstrip\":false,\"normalized\":false,\"special\":true}",
                           i > 0 ? ",\n" : "", i, specials[i]);
}

static void add_vocabulary(const struct text_table *pieces, struct attn_buffer *json)
{
    for (uint32_t id = 0; id < pieces->count; id++) {
        size_t size;
        const char *piece = text_table_get(pieces, id, &size);
        attn_buffer_add_text(json, id > 0 ? ",\n" : "");
        attn_buffer_add_json_string(json, piece, size);
        attn_buffer_format(json, ":%u", (unsigned)id);
    }
}

static void add_document(const struct text_table *pieces, struct attn_buffer *json)
{
    static const char head[] = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
                               "\"added_tokens\":[";
    static const char components[] =
        "],\n\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
        "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},\n"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\n"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\n"
        "\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}},"
        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
        "{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":0}}],\n"
        "\"pair\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}},"
        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
        "{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":0}},"
        "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}},"
        "{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":1}}],\n"
        "\"special_tokens\":{\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[2],\"tokens\":[\"[CLS]\"]},"
        "\"[SEP]\":{\"id\":\"[SEP]\",\"ids\":[3],\"tokens\":[\"[SEP]\"]}}},\n"
        "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\n"
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
        "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\n\"vocab\":{\n";
    attn_buffer_add_text(json, head);
    add_specials_json(json);
    attn_buffer_add_text(json, components);
    add_vocabulary(pieces, json);
    attn_buffer_add_text(json, "}}}\n");
}

static bool train(struct training *training, const char *text, size_t text_size, uint32_t size,
                  struct attn_buffer *json, struct attn_error *error)
{
    if (!count_words(&training->words, text, text_size) || !add_specials(&training->pieces) ||
        !alphabet_create(&training->alphabet, &training->words, size - WORD_PIECE_SPECIALS,
                         inner_prefix, &training->pieces) ||
        !split_words(&training->words, &training->alphabet, &training->split))
        return attn_error_memory(error);
    text_table_release(&training->words);
    if (!pair_merges_learn(&training->split, &training->pieces, inner_prefix, size,
                           &training->merges, error))
        return false;
    add_document(&training->pieces, json);
    return !json->failed || attn_error_memory(error);
}

bool word_piece_train(const char *text, size_t text_size, int32_t size, struct attn_buffer *json,
                      struct attn_error *error)
{
    if (!train_check_size(size, WORD_PIECE_SPECIALS, error) ||
        !train_check_text(text, text_size, error))
        return false;
    struct training training = {0};
    bool done = train(&training, text, text_size, (uint32_t)size, json, error);
    text_table_release(&training.words);
    text_table_release(&training.pieces);
    alphabet_release(&training.alphabet);
    pair_words_release(&training.split);
    pair_merges_release(&training.merges);
    return done;
}
