/* Makes a language model of random numbers, writes it into a folder, and answers each line of token
 * ids on standard input, a JSON array, with the logits of its last token: the side of attn for
 * scripts/compare_written_model.py.
 *
 *     write_model gpt2|bert DIRECTORY */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/language_model.h"

enum { CONTEXT = 64, VOCABULARY = 300 };

/* Larger numbers than training starts from, and biases that are not 0, so that each one counts. */
static void enlarge(struct language_model *model)
{
    const struct parameters *parameters = language_model_parameters(model);
    for (size_t n = 0; n < parameters->item_count; n++) {
        const struct parameter *item = &parameters->items[n];
        float *values = parameters->values + item->begin;
        for (int64_t i = 0; i < item->count; i++)
            values[i] = item->rank == 2 ? 8.0f * values[i]
                                        : values[i] + 0.1f * (float)((i * 7 + 3) % 5 - 2);
    }
}

static bool make(const char *kind, const char *directory, struct language_model **model,
                 struct attn_error *error)
{
    const struct language_model_settings settings = {
        .kind = strcmp(kind, "gpt2") == 0 ? LANGUAGE_MODEL_GPT2 : LANGUAGE_MODEL_BERT,
        .vocabulary = VOCABULARY,
        .layers = 3,
        .heads = 4,
        .width = 48,
        .inner = 100,
        .context = CONTEXT,
        .dropout = 0.1f,
    };
    if (!language_model_create(model, &settings, 11, error))
        return false;
    enlarge(*model);
    return language_model_write(*model, directory, 0, error);
}

static bool answer(struct language_model *model, const struct compute *compute, const char *line,
                   struct attn_error *error)
{
    json_t *request = json_loads(line, 0, NULL);
    int32_t ids[CONTEXT] = {0};
    size_t count = json_array_size(request);
    for (size_t t = 0; t < count && t < CONTEXT; t++)
        ids[t] = (int32_t)json_integer_value(json_array_get(request, t));
    json_decref(request);
    float logits[VOCABULARY];
    if (!language_model_next(model, compute, ids, (int64_t)count, logits, error))
        return false;
    for (int i = 0; i < VOCABULARY; i++)
        printf("%s%.9g", i > 0 ? ", " : "[", (double)logits[i]);
    printf("]\n");
    return true;
}

int main(int argc, char **argv)
{
    struct language_model *model = NULL;
    struct compute compute = {0};
    struct attn_error error = {"usage: write_model gpt2|bert DIRECTORY"};
    char line[4096];
    bool done =
        argc == 3 && compute_create(&compute, 1, &error) && make(argv[1], argv[2], &model, &error);
    while (done && fgets(line, sizeof line, stdin))
        done = answer(model, &compute, line, &error);
    if (!done)
        fprintf(stderr, "write_model: %s\n", error.message);
    language_model_close(model);
    compute_destroy(&compute);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
