#include "generate_prompts.h"

#include <stdlib.h>

#include "output.h"

/* Texts that are written side by side at most. */
enum { SIDE_BY_SIDE = 8 };

static bool encode_all(const struct generator *generator, const struct input *input,
                       struct chat_tokens *prompts, int64_t *longest, struct attn_error *error)
{
    *longest = 0;
    for (size_t i = 0; i < input->count; i++) {
        char name[256];
        input_describe(input, i, name, sizeof name);
        if (input->texts[i].size == 0)
            return attn_error_set(error, "%s is empty; every line must be a prompt", name);
        if (!generator_encode(generator, &input->texts[i], name, &prompts[i], error))
            return false;
        if ((int64_t)prompts[i].count > *longest)
            *longest = (int64_t)prompts[i].count;
    }
    return true;
}

static bool print_lines(const struct generator *generator, const struct text *texts,
                        const struct chat_tokens *prompts, const struct written *written,
                        size_t first, size_t count, struct attn_error *error)
{
    struct attn_buffer lines = {0};
    for (size_t i = 0; i < count; i++) {
        const struct generation_settings settings =
            generator_settings(generator, (int64_t)(first + i));
        written_add_json(&written[i], &texts[i], prompts[i].count, &settings.sampler, &lines);
    }
    bool done = output_write(&lines, error);
    attn_buffer_release(&lines);
    return done;
}

/* Prompts first.. of `count`, each in a sequence of its own. */
static bool write_some(const struct generator *generator, const struct text *texts,
                       const struct chat_tokens *prompts, size_t first, size_t count,
                       struct attn_error *error)
{
    struct prompt some[SIDE_BY_SIDE];
    struct written written[SIDE_BY_SIDE] = {{0}};
    for (size_t i = 0; i < count; i++) {
        some[i] = (struct prompt){prompts[i].ids, (int64_t)prompts[i].count, 0};
        causal_session_truncate(generator->texts, (int64_t)i, 0);
    }
    const struct generation_settings settings = generator_settings(generator, (int64_t)first);
    struct writing writing = {.texts = written};
    bool done = writing_run(&writing, generator, &settings, some, (int64_t)count, NULL, error) &&
                print_lines(generator, texts, prompts, written, first, count, error);
    for (size_t i = 0; i < count; i++)
        written_release(&written[i]);
    return done;
}

static bool write_all(struct generator *generator, const struct input *input,
                      const struct chat_tokens *prompts, int64_t longest, struct attn_error *error)
{
    const size_t wanted = input->count < SIDE_BY_SIDE ? input->count : SIDE_BY_SIDE;
    int64_t granted;
    if (!generator_start(generator, (int64_t)wanted, longest, &granted, error))
        return false;
    generator_tell_seed(generator);
    for (size_t first = 0; first < input->count; first += (size_t)granted) {
        const size_t rest = input->count - first;
        const size_t count = rest < (size_t)granted ? rest : (size_t)granted;
        progress_show("generate", first, input->count, "texts");
        bool done =
            write_some(generator, input->texts + first, prompts + first, first, count, error);
        progress_end();
        if (!done)
            return false;
    }
    return true;
}

bool generate_prompts_run(struct generator *generator, const struct input *input,
                          struct attn_error *error)
{
    int64_t longest;
    struct chat_tokens *prompts = calloc(input->count, sizeof *prompts);
    if (!prompts)
        return attn_error_memory(error);
    bool done = encode_all(generator, input, prompts, &longest, error) &&
                write_all(generator, input, prompts, longest, error);
    for (size_t i = 0; i < input->count; i++)
        chat_tokens_release(&prompts[i]);
    free(prompts);
    return done;
}
