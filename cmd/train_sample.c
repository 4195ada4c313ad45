#include "train_sample.h"

#include <stdlib.h>

#include "output.h"
#include "text/unicode.h"
#include "train/sample.h"

enum { TOP = 40 };
static const double temperature = 0.8;

/* The id of a line's end, where the text has lines; else of the text's first token: the model has
 * seen what follows it. */
static bool find_beginning(const struct training *training, int32_t *id, struct attn_error *error)
{
    const struct corpus *corpus = &training->corpus;
    struct tokenizer_input input = {.text = "\n", .text_size = 1, .specials = SPECIAL_PLAIN};
    struct encoding encoding;
    *id = corpus->ids[0];
    if (!tokenizer_encode(training->tokenizer, &input, &encoding, error))
        return false;
    int32_t line_end = encoding.token_count == 1 ? encoding.tokens[0].id : -1;
    for (int64_t i = 0; i < corpus->training_count && *id != line_end; i++)
        if (corpus->ids[i] == line_end)
            *id = line_end;
    encoding_release(&encoding);
    return true;
}

/* Without the bytes of a character that the last token leaves unfinished. */
static bool print_text(struct attn_buffer *text, struct attn_error *error)
{
    size_t valid = utf8_invalid_offset(text->data, text->size);
    struct attn_buffer out = {0};
    attn_buffer_add(&out, "\n", 1);
    attn_buffer_add(&out, text->data, text->size - valid < 4 ? valid : text->size);
    attn_buffer_add(&out, "\n", 1);
    bool done = !text->failed ? output_write(&out, error) : attn_error_memory(error);
    attn_buffer_release(&out);
    return done;
}

bool train_sample_print(struct training *training, int64_t count, struct attn_error *error)
{
    struct sample_settings settings = {
        .window = training->state.settings.context,
        .sampler = {.repeat_penalty = 1.0,
                    .top_k = TOP,
                    .top_p = 1.0,
                    .temperature = temperature,
                    .seed = (uint64_t)training->state.settings.seed},
        .limit = tokenizer_size(training->tokenizer),
    };
    int32_t *ids = calloc((size_t)count + 1, sizeof *ids);
    struct attn_buffer text = {0};
    bool done = ids || attn_error_memory(error);
    done =
        done && find_beginning(training, &ids[0], error) &&
        sample_tokens(training->model, &training->compute, &settings, 1, count + 1, ids, error) &&
        tokenizer_decode(training->tokenizer, ids + 1, (size_t)count, &text, error) &&
        print_text(&text, error);
    attn_buffer_release(&text);
    free(ids);
    return done;
}
