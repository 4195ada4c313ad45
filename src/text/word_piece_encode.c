#include "text/encoder.h"
#include "text/pre_tokenizer.h"

/* Cuts the normalised word bytes[begin..end) into pieces. */
static bool encode_word(struct encoder *encoder, size_t begin, size_t end)
{
    const struct word_piece *model = &encoder->tokenizer->word_piece;
    const struct source_span *spans = encoder->normalized.spans + begin;
    const char *word = encoder->normalized.bytes + begin;
    size_t size = end - begin, first_token = encoder->encoding->token_count;

    if (!encoder_push_word(encoder, spans[0].begin, spans[size - 1].end))
        return false;
    bool known = word_piece_takes(model, word, size);
    for (size_t at = 0, next; known && at < size; at = next) {
        int32_t id = word_piece_next(model, word, size, at, &next);
        known = id != VOCABULARY_NO_ID;
        if (known && !encoder_push_piece(encoder, id, spans[at].begin, spans[next - 1].end))
            return false;
    }
    if (known)
        return true;
    encoder->encoding->token_count = first_token;
    return encoder_push_piece(encoder, model->unknown_id, spans[0].begin, spans[size - 1].end);
}

static bool encode_words(struct encoder *encoder, size_t begin, size_t end)
{
    size_t word_end;
    while (pre_tokenizer_next(encoder->normalized.bytes, end, &begin, &word_end)) {
        if (!encode_word(encoder, begin, word_end))
            return false;
        begin = word_end;
    }
    return true;
}

bool word_piece_encode_stretch(struct encoder *encoder, size_t begin, size_t end)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct normalized_text *normalized = &encoder->normalized;
    if (!bert_normalize(&tokenizer->normalizer, encoder->text, begin, end, normalized))
        return false;

    struct added_search search = {0};
    struct added_match match;
    size_t done = 0;
    while (added_tokens_next(&tokenizer->normalized, encoder->plain, normalized->bytes,
                             normalized->size, &search, &match)) {
        if (!encode_words(encoder, done, match.begin) ||
            !encoder_push_added(encoder, match.id, normalized->spans[match.begin].begin,
                                normalized->spans[match.end - 1].end))
            return false;
        done = match.end;
    }
    return encode_words(encoder, done, normalized->size);
}
