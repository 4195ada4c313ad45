/* attn generate: a model writes on. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "generate_chat.h"
#include "generate_look.h"
#include "generate_prompts.h"
#include "generate_written.h"
#include "map_form.h"
#include "output.h"
#include "verb.h"

/* What a reader of standard output cannot see. */
static void tell_end(const struct generator *generator, const struct written *written)
{
    if (written->end == GENERATION_CONTEXT)
        fprintf(stderr, "attn generate: the context of %lld tokens is full\n",
                (long long)generator->positions);
}

static bool print_json(const struct generator *generator, const struct text *text,
                       const struct chat_tokens *prompt, const struct written *written,
                       struct attn_error *error)
{
    struct attn_buffer line = {0};
    written_add_json(written, text, prompt->count, &generator->options->sampler, &line);
    bool done = output_write(&line, error);
    attn_buffer_release(&line);
    return done;
}

/* A text that is shown ends with a line end, its own or one more. */
static bool end_line(const struct written *written, struct attn_error *error)
{
    const struct attn_buffer *text = &written->text;
    return (text->size > 0 && text->data[text->size - 1] == '\n') || output_write_text("\n", error);
}

static bool write_on(const struct generator *generator, const struct text *text,
                     const struct chat_tokens *tokens, struct trace *trace, struct written *written,
                     struct attn_error *error)
{
    const struct generate_options *options = generator->options;
    const struct generation_settings settings = generator_settings(generator, 0);
    const struct prompt prompt = {tokens->ids, (int64_t)tokens->count, 0};
    struct writing writing = {.texts = written, .shown = !options->shared.json};
    struct model_observer observer;
    if (trace)
        observer = trace_observer(trace);
    if (!writing_run(&writing, generator, &settings, &prompt, 1, trace ? &observer : NULL, error))
        return false;
    if (options->shared.json)
        return print_json(generator, text, tokens, written, error);
    if (!end_line(written, error))
        return false;
    tell_end(generator, written);
    return true;
}

static bool write_text(struct generator *generator, const struct text *text,
                       const struct chat_tokens *tokens, struct attn_error *error)
{
    int64_t granted;
    const int64_t count = (int64_t)tokens->count;
    const bool looks = generator->options->look != NULL;
    struct trace *trace = NULL;
    struct written written = {0};
    bool done = generator_start(generator, 1, count, &granted, error) &&
                (!looks || trace_create(&trace, &generator->settings, count - 1, error));
    if (done) {
        generator_tell_seed(generator);
        done = write_on(generator, text, tokens, trace, &written, error);
    }
    if (done && looks) {
        const struct generate_look look = {generator, trace, text, tokens, &written};
        done = generate_look_draw(&look, error);
    }
    written_release(&written);
    trace_destroy(trace);
    return done;
}

static bool run_text(struct generator *generator, const struct text *text, const char *name,
                     struct attn_error *error)
{
    struct chat_tokens tokens = {0};
    bool done = generator_encode(generator, text, name, &tokens, error) &&
                write_text(generator, text, &tokens, error);
    chat_tokens_release(&tokens);
    return done;
}

static bool run(const struct generate_options *options, struct attn_error *error)
{
    struct input input = {0};
    struct generator generator = {0};
    struct shared_options texts = options->shared;
    if (options->prompts)
        texts.file = options->prompts;
    const bool has_text = options->prompts || generate_options_have_text(options);
    const enum input_form form = options->prompts ? INPUT_LINES : INPUT_ONE_TEXT;
    bool done = (!options->look || attn_file_check_write(options->look, error)) &&
                (!has_text || input_read(&texts, form, &input, error)) &&
                generator_open(&generator, options, error);
    if (done) {
        char name[256] = "";
        if (has_text)
            input_describe(&input, 0, name, sizeof name);
        if (options->interactive)
            done = generate_chat_run(&generator, has_text ? &input.texts[0] : NULL, name, error);
        else if (options->prompts)
            done = generate_prompts_run(&generator, &input, error);
        else
            done = run_text(&generator, &input.texts[0], name, error);
    }
    generator_close(&generator);
    input_release(&input);
    return done;
}

enum status verb_generate(int argc, char **argv, struct attn_error *error)
{
    struct generate_options options;
    if (!generate_options_parse(argc, argv, &options, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    return run(&options, error) ? STATUS_SUCCESS : STATUS_FAILURE;
}
