/* Random tokens twice: a text whose second half can be told from its first, but by nothing that was
 * learned. */
#include <stdlib.h>
#include <string.h>

#include "base/splitmix.h"
#include "heads_texts.h"

/* The ids that tokens are drawn from: the vocabulary without special tokens. */
static size_t list_candidates(const struct session *session, int32_t *ids)
{
    const struct tokenizer *tokenizer = session->tokenizer;
    const int64_t size = tokenizer_size(tokenizer), rows = session->settings.vocabulary;
    size_t count = 0;
    for (int32_t id = 0; id < size && id < rows; id++) {
        const char *piece = tokenizer_piece(tokenizer, id);
        if (piece && tokenizer_special(tokenizer, piece) != id)
            ids[count++] = id;
    }
    return count;
}

/* The first `drawn` of ids[count] become different ones at random (R. Durstenfeld's shuffle). */
static void draw(int32_t *ids, size_t count, size_t drawn, uint64_t seed)
{
    for (size_t n = 0; n < drawn; n++) {
        const uint64_t number = attn_splitmix(seed + (n + 1) * ATTN_SPLITMIX_STEP);
        const size_t other = n + (size_t)(number % (count - n));
        const int32_t id = ids[other];
        ids[other] = ids[n];
        ids[n] = id;
    }
}

/* How many tokens the model adds before and behind a text, from an encoded word. */
struct frame {
    struct encoding encoding;
    size_t before, behind;
};

static bool make_frame(const struct session *session, struct frame *frame, struct attn_error *error)
{
    const struct tokenizer_input word = {.text = "a", .text_size = 1};
    *frame = (struct frame){0};
    if (!tokenizer_encode(session->tokenizer, &word, &frame->encoding, error))
        return false;
    const struct token *tokens = frame->encoding.tokens;
    const size_t count = frame->encoding.token_count;
    while (frame->before < count && tokens[frame->before].word == TOKEN_NO_WORD)
        frame->before++;
    while (frame->behind < count - frame->before &&
           tokens[count - 1 - frame->behind].word == TOKEN_NO_WORD)
        frame->behind++;
    return true;
}

static bool fill(const struct frame *frame, const int32_t *ids, size_t count,
                 struct encoding *encoding, struct attn_error *error)
{
    const struct token *tokens = frame->encoding.tokens;
    const size_t drawn = frame->before, behind = drawn + 2 * count;
    encoding->tokens = calloc(behind + frame->behind, sizeof *encoding->tokens);
    if (!encoding->tokens)
        return attn_error_memory(error);
    encoding->token_count = behind + frame->behind;
    memcpy(encoding->tokens, tokens, frame->before * sizeof *tokens);
    for (size_t n = 0; n < 2 * count; n++)
        encoding->tokens[drawn + n] = (struct token){.id = ids[n % count], .word = (int32_t)n};
    memcpy(encoding->tokens + behind, tokens + frame->encoding.token_count - frame->behind,
           frame->behind * sizeof *tokens);
    return true;
}

static bool make_text(const struct heads_options *options, const struct session *session,
                      const struct frame *frame, int32_t *ids, struct encoding *encoding,
                      struct attn_error *error)
{
    const size_t count = (size_t)options->repeat, candidates = list_candidates(session, ids);
    const size_t tokens = frame->before + 2 * count + frame->behind;
    const size_t positions = (size_t)session->settings.positions;
    if (count > candidates)
        return attn_error_set(error,
                              "--repeat is %zu, but the vocabulary has %zu tokens to draw from",
                              count, candidates);
    if (tokens > positions)
        return attn_error_set(error, "--repeat %zu makes %zu tokens, the model has %zu positions",
                              count, tokens, positions);
    draw(ids, candidates, count, options->seed);
    return fill(frame, ids, count, encoding, error);
}

bool heads_texts_repeat(const struct heads_options *options, const struct session *session,
                        struct heads_texts *texts, struct attn_error *error)
{
    *texts = (struct heads_texts){0};
    struct frame frame;
    if (!make_frame(session, &frame, error))
        return false;
    int32_t *ids = calloc((size_t)tokenizer_size(session->tokenizer) + 1, sizeof *ids);
    texts->encodings = calloc(1, sizeof *texts->encodings);
    const bool done = ids && texts->encodings
                          ? make_text(options, session, &frame, ids, &texts->encodings[0], error)
                          : attn_error_memory(error);
    texts->count = done;
    free(ids);
    encoding_release(&frame.encoding);
    return done;
}
