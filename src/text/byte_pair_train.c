#include <stdlib.h>
#include <string.h>

#include "text/byte_level.h"
#include "text/pair_merges.h"
#include "text/tokenizer_train.h"
#include "text/train_check.h"
#include "text/unicode.h"

static const char end_of_text[] = "<|endoftext|>";

/* What is made on the way from the text to the file. */
struct training {
    struct text_table words;
    struct text_table pieces; /* raw bytes; numbered as the ids */
    struct pair_words split;
    struct pair_merges merges;
    struct attn_buffer spelling; /* workspace */
};

static bool count_words(struct text_table *words, const char *text, size_t size)
{
    uint32_t index;
    for (size_t at = 0, end; at < size; at = end) {
        end = byte_level_word_end(text, size, at);
        if (!text_table_add(words, text + at, end - at, 1, &index))
            return false;
    }
    return true;
}

/* The ids 0 to 255 are single bytes in GPT-2's order. */
static bool add_bytes(struct text_table *pieces)
{
    uint32_t index;
    for (int rank = 0; rank < BYTE_LEVEL_BYTES; rank++) {
        char byte = (char)byte_level_ordered(rank);
        if (!text_table_add(pieces, &byte, 1, 1, &index))
            return false;
    }
    return true;
}

static bool split_words(const struct text_table *words, struct pair_words *split)
{
    int32_t ids[BYTE_LEVEL_BYTES];
    for (int rank = 0; rank < BYTE_LEVEL_BYTES; rank++)
        ids[byte_level_ordered(rank)] = rank;
    for (uint32_t i = 0; i < words->count; i++) {
        size_t size;
        const char *word = text_table_get(words, i, &size);
        for (size_t j = 0; j < size; j++)
            if (!pair_words_push(split, ids[(unsigned char)word[j]]))
                return false;
        if (!pair_words_end(split, words->entries[i].times))
            return false;
    }
    return true;
}

static void spell(struct training *training, uint32_t id)
{
    size_t size;
    const char *piece = text_table_get(&training->pieces, id, &size);
    byte_level_spell(piece, size, &training->spelling);
}

static void add_vocabulary(struct training *training, struct attn_buffer *json)
{
    for (uint32_t id = 0; id < training->pieces.count; id++) {
        attn_buffer_clear(&training->spelling);
        spell(training, id);
        attn_buffer_add_json_string(json, training->spelling.data, training->spelling.size);
        attn_buffer_format(json, ":%u,\n", (unsigned)id);
    }
    attn_buffer_add_json_string(json, end_of_text, strlen(end_of_text));
    attn_buffer_format(json, ":%u", (unsigned)training->pieces.count);
}

static void add_merges(struct training *training, struct attn_buffer *json)
{
    for (size_t i = 0; i < training->merges.count; i++) {
        attn_buffer_clear(&training->spelling);
        spell(training, (uint32_t)training->merges.merges[i].left);
        attn_buffer_add_text(&training->spelling, " ");
        spell(training, (uint32_t)training->merges.merges[i].right);
        attn_buffer_add_text(json, i > 0 ? ",\n" : "");
        attn_buffer_add_json_string(json, training->spelling.data, training->spelling.size);
    }
}

static void add_document(struct training *training, struct attn_buffer *json)
{
    static const char byte_level[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                                     "\"trim_offsets\":false,\"use_regex\":true}";
    attn_buffer_format(json,
                       "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
                       "\"added_tokens\":[{\"id\":%u,\"content\":",
                       (unsigned)training->pieces.count);
    attn_buffer_add_json_string(json, end_of_text, strlen(end_of_text));
    attn_buffer_format(json,
                       ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                       "\"normalized\":false,\"special\":true}],\n"
                       "\"normalizer\":null,\n\"pre_tokenizer\":%s,\n\"post_processor\":%s,\n"
                       "\"decoder\":%s,\n"
                       "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                       "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
                       "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n"
                       "\"vocab\":{\n",
                       byte_level, byte_level, byte_level);
    add_vocabulary(training, json);
    attn_buffer_add_text(json, "},\n\"merges\":[\n");
    add_merges(training, json);
    attn_buffer_add_text(json, "]}}\n");
}

static bool train(struct training *training, const char *text, size_t text_size, int32_t size,
                  struct attn_buffer *json, struct attn_error *error)
{
    if (!count_words(&training->words, text, text_size) || !add_bytes(&training->pieces) ||
        !split_words(&training->words, &training->split))
        return attn_error_memory(error);
    text_table_release(&training->words);
    if (!pair_merges_learn(&training->split, &training->pieces, "", (uint32_t)size - 1,
                           &training->merges, error))
        return false;
    add_document(training, json);
    return (!json->failed && !training->spelling.failed) || attn_error_memory(error);
}

bool byte_pair_train(const char *text, size_t text_size, int32_t size, struct attn_buffer *json,
                     struct attn_error *error)
{
    if (!train_check_size(size, BYTE_PAIR_SMALLEST, error) ||
        !train_check_text(text, text_size, error))
        return false;
    struct training training = {0};
    bool done = train(&training, text, text_size, size, json, error);
    text_table_release(&training.words);
    text_table_release(&training.pieces);
    pair_words_release(&training.split);
    pair_merges_release(&training.merges);
    attn_buffer_release(&training.spelling);
    return done;
}
