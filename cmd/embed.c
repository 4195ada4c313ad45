/* attn embed: one vector a text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/embedding.h"
#include "options.h"
#include "output.h"
#include "session.h"
#include "text/encoding_truncate.h"
#include "verb.h"

enum { OPTION_POOLING = OPTION_OWN, OPTION_NO_NORMALIZE, OPTION_TRUNCATE };

/* Texts whose vectors are in memory at a time: many enough that sorting them by length pays. */
enum { WINDOW = 1024 };

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_FILE,
    OPTION_ENTRY_HELP,
    {"pooling", required_argument, NULL, OPTION_POOLING},
    {"no-normalize", no_argument, NULL, OPTION_NO_NORMALIZE},
    {"truncate", no_argument, NULL, OPTION_TRUNCATE},
    OPTION_ENTRY_END,
};

struct embed_options {
    struct shared_options shared;
    bool pooling_is_given;
    enum pooling pooling;
    bool no_normalize;
    bool truncate;
};

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct embed_options *options = user;
    switch (option) {
    case OPTION_POOLING:
        options->pooling_is_given = true;
        if (strcmp(value, "mean") == 0)
            options->pooling = POOLING_MEAN;
        else if (strcmp(value, "cls") == 0)
            options->pooling = POOLING_CLS;
        else
            return attn_error_set(error, "--pooling is '%s', but must be mean or cls", value);
        break;
    case OPTION_NO_NORMALIZE:
        options->no_normalize = true;
        break;
    case OPTION_TRUNCATE:
        options->truncate = true;
        break;
    }
    return true;
}

static bool encode_text(const struct session *session, const struct input *input, size_t index,
                        bool truncate, struct encoding *encoding, struct attn_error *error)
{
    char name[256];
    input_describe(input, index, name, sizeof name);
    if (!session_encode(session, &input->texts[index], name, NULL, encoding, error))
        return false;

    size_t positions = (size_t)session->config.positions;
    if (encoding->token_count <= positions)
        return true;
    if (truncate) {
        encoding_truncate(encoding, positions);
        return true;
    }
    attn_error_set(error, "%s has %zu tokens, the model has %zu positions; --truncate cuts it",
                   name, encoding->token_count, positions);
    encoding_release(encoding);
    return false;
}

/* All texts are encoded before the first vector is computed: a text that cannot be used is told
 * before any output. Pooling has no use for words, which are most of an encoding's memory. */
static bool encode_all(const struct session *session, const struct input *input, bool truncate,
                       struct encoding *encodings, struct attn_error *error)
{
    for (size_t i = 0; i < input->count; i++) {
        if (!encode_text(session, input, i, truncate, &encodings[i], error)) {
            encodings[i] = (struct encoding){0};
            return false;
        }
        free(encodings[i].words);
        encodings[i].words = NULL;
        encodings[i].word_count = 0;
    }
    return true;
}

static void add_line(const struct text *text, const float *vector, int64_t hidden,
                     struct attn_buffer *out)
{
    attn_buffer_add_text(out, "{\"text\": ");
    attn_buffer_add_json_string(out, text->data, text->size);
    attn_buffer_add_text(out, ", \"embedding\": [");
    for (int64_t i = 0; i < hidden; i++) {
        if (i > 0)
            attn_buffer_add(out, ", ", 2);
        attn_buffer_add_json_float(out, vector[i]);
    }
    attn_buffer_add_text(out, "]}\n");
}

static bool embed_windows(const struct session *session, const struct embedding_settings *settings,
                          const struct input *input, const struct encoding *encodings,
                          float *vectors, struct attn_buffer *out, struct attn_error *error)
{
    int64_t hidden = session->config.hidden;
    for (size_t begin = 0; begin < input->count; begin += WINDOW) {
        size_t rest = input->count - begin;
        size_t count = rest < WINDOW ? rest : WINDOW;
        progress_show("embed", begin, input->count, "texts");
        bool computed = embedding_compute(session->bert, &session->compute, settings,
                                          encodings + begin, count, vectors, error);
        progress_end();
        if (!computed)
            return false;
        attn_buffer_clear(out);
        for (size_t i = 0; i < count; i++)
            add_line(&input->texts[begin + i], vectors + i * (size_t)hidden, hidden, out);
        if (!output_write(out, error))
            return false;
    }
    return true;
}

static bool embed(const struct embed_options *options, struct session *session,
                  const struct input *input, struct encoding *encodings, struct attn_error *error)
{
    struct embedding_settings settings;
    if (!session_locate(session, options->shared.model, error) ||
        !session_open_config(session, error) ||
        !session_read_embedding(session, &settings, error) ||
        !session_open_tokenizer(session, error) ||
        !encode_all(session, input, options->truncate, encodings, error) ||
        !session_open_bert(session, options->shared.threads, error))
        return false;
    if (options->pooling_is_given)
        settings.pooling = options->pooling;
    if (options->no_normalize)
        settings.normalize = false;

    size_t window = input->count < WINDOW ? input->count : WINDOW;
    float *vectors = calloc(window * (size_t)session->config.hidden, sizeof *vectors);
    if (!vectors)
        return attn_error_memory(error);
    struct attn_buffer out = {0};
    bool done = embed_windows(session, &settings, input, encodings, vectors, &out, error);
    attn_buffer_release(&out);
    free(vectors);
    return done;
}

static bool run(const struct embed_options *options, struct attn_error *error)
{
    struct input input = {0};
    if (!input_read(&options->shared, INPUT_LINES, &input, error))
        return false;
    struct encoding *encodings = calloc(input.count, sizeof *encodings);
    struct session session = {0};
    bool done =
        encodings ? embed(options, &session, &input, encodings, error) : attn_error_memory(error);
    for (size_t i = 0; encodings && i < input.count; i++)
        encoding_release(&encodings[i]);
    free(encodings);
    session_close(&session);
    input_release(&input);
    return done;
}

enum status verb_embed(int argc, char **argv, struct attn_error *error)
{
    struct embed_options options = {0};
    if (!options_parse(argc, argv, option_table, take_option, &options, &options.shared, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    if (!input_check(&options.shared, INPUT_LINES, error))
        return STATUS_USAGE;
    return run(&options, error) ? STATUS_SUCCESS : STATUS_FAILURE;
}
