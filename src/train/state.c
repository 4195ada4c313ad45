#include "train/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/safetensors.h"
#include "format/safetensors_write.h"
#include "train/checksum.h"

static const char file_name[] = "training.safetensors";
static const char form[] = "attn training 1";

/* What is kept of each parameter. */
enum part { WEIGHTS, FIRST, SECOND, PARTS };
static const char *const part_names[PARTS] = {"weights", "first", "second"};

enum { TENSOR_NAME_SIZE = PARAMETER_NAME_SIZE + 16, NUMBER_SIZE = 32 };

struct training_file {
    char *path;
    struct safetensors *tensors;
};

static void name_tensor(enum part part, const struct parameter *item, char name[TENSOR_NAME_SIZE])
{
    snprintf(name, TENSOR_NAME_SIZE, "%s/%s", part_names[part], item->name);
}

static float *part_numbers(enum part part, const struct parameter *item,
                           const struct parameters *parameters, const struct optimizer *optimizer)
{
    float *numbers[PARTS] = {parameters->values, optimizer->first, optimizer->second};
    return numbers[part] + item->begin;
}

/* The metadata that the checksum covers, as they stand in the file. */
struct state_text {
    char *settings; /* JSON */
    char step[NUMBER_SIZE], tokens[NUMBER_SIZE];
    char corpus_checksum[NUMBER_SIZE], corpus_size[NUMBER_SIZE];
};

static bool write_text(const struct training_state *state, struct state_text *text,
                       struct attn_error *error)
{
    json_t *settings = train_settings_to_json(&state->settings);
    text->settings = settings ? json_dumps(settings, JSON_COMPACT) : NULL;
    json_decref(settings);
    if (!text->settings)
        return attn_error_memory(error);
    snprintf(text->step, NUMBER_SIZE, "%" PRId64, state->step);
    snprintf(text->tokens, NUMBER_SIZE, "%" PRId64, state->tokens);
    snprintf(text->corpus_checksum, NUMBER_SIZE, "%016" PRIx64, state->corpus_checksum);
    snprintf(text->corpus_size, NUMBER_SIZE, "%" PRId64, state->corpus_size);
    return true;
}

static uint64_t add_text(const char *settings, const char *step, const char *tokens,
                         const char *corpus_checksum, const char *corpus_size)
{
    uint64_t sum = checksum_add(0, settings, strlen(settings));
    sum = checksum_add(sum, step, strlen(step));
    sum = checksum_add(sum, tokens, strlen(tokens));
    sum = checksum_add(sum, corpus_checksum, strlen(corpus_checksum));
    return checksum_add(sum, corpus_size, strlen(corpus_size));
}

static bool write_file(const char *path, const struct state_text *text,
                       const struct parameters *parameters, const struct optimizer *optimizer,
                       struct written_tensor *tensors, char (*names)[TENSOR_NAME_SIZE],
                       struct attn_error *error)
{
    uint64_t sum = add_text(text->settings, text->step, text->tokens, text->corpus_checksum,
                            text->corpus_size);
    size_t count = 0;
    for (enum part part = WEIGHTS; part < PARTS; part++)
        for (size_t i = 0; i < parameters->item_count; i++) {
            const struct parameter *item = &parameters->items[i];
            const float *numbers = part_numbers(part, item, parameters, optimizer);
            name_tensor(part, item, names[count]);
            tensors[count] =
                (struct written_tensor){names[count], item->rank, item->shape, numbers};
            sum = checksum_add(sum, numbers, (size_t)item->count * sizeof *numbers);
            count++;
        }
    char checksum[NUMBER_SIZE];
    snprintf(checksum, sizeof checksum, "%016" PRIx64, sum);
    const char *const metadata[] = {
        "form",        form,
        "settings",    text->settings,
        "step",        text->step,
        "tokens",      text->tokens,
        "corpus",      text->corpus_checksum,
        "corpus_size", text->corpus_size,
        "checksum",    checksum,
    };
    return safetensors_write(path, tensors, count, metadata, sizeof metadata / sizeof metadata[0],
                             error);
}

bool training_state_write(const struct training_state *state, const char *directory,
                          const struct parameters *parameters, const struct optimizer *optimizer,
                          struct attn_error *error)
{
    size_t count = PARTS * parameters->item_count;
    char *path = attn_path_join(directory, file_name);
    struct written_tensor *tensors = calloc(count + 1, sizeof *tensors);
    char(*names)[TENSOR_NAME_SIZE] = calloc(count + 1, sizeof *names);
    struct state_text text = {0};
    bool done = path && tensors && names ? true : attn_error_memory(error);
    done = done && write_text(state, &text, error) &&
           write_file(path, &text, parameters, optimizer, tensors, names, error);
    free(text.settings);
    free(names);
    free(tensors);
    free(path);
    return done;
}

static bool refuse(const struct training_file *file, const char *what, struct attn_error *error)
{
    return attn_error_set(error, "%s: %s", file->path, what);
}

/* A whole number of the metadata, from 0 on, in this base. */
static bool read_number(const struct training_file *file, const char *key, int base,
                        uint64_t *number, struct attn_error *error)
{
    const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
    const char *text = safetensors_metadata(file->tensors, key);
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length > 16 || text[strspn(text, digits)])
        return attn_error_set(error, "%s: is no training of attn: its metadata have no number '%s'",
                              file->path, key);
    *number = strtoull(text, NULL, base);
    return true;
}

static bool read_settings(const struct training_file *file, struct train_settings *settings,
                          struct attn_error *error)
{
    const char *text = safetensors_metadata(file->tensors, "settings");
    json_t *object = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool done = json_is_object(object)
                    ? train_settings_from_json(settings, object, file->path, error)
                    : refuse(file, "has no settings of a training", error);
    json_decref(object);
    return done;
}

static bool read_state(const struct training_file *file, struct training_state *state,
                       struct attn_error *error)
{
    const char *written = safetensors_metadata(file->tensors, "form");
    uint64_t step = 0, tokens = 0, size = 0;
    if (!written || strcmp(written, form) != 0)
        return refuse(file, "is no training that this version of attn can go on with", error);
    if (!read_settings(file, &state->settings, error) ||
        !read_number(file, "step", 10, &step, error) ||
        !read_number(file, "tokens", 10, &tokens, error) ||
        !read_number(file, "corpus_size", 10, &size, error) ||
        !read_number(file, "corpus", 16, &state->corpus_checksum, error))
        return false;
    state->step = (int64_t)step;
    state->tokens = (int64_t)tokens;
    state->corpus_size = (int64_t)size;
    return true;
}

bool training_file_open(struct training_file **file, const char *directory,
                        struct training_state *state, struct attn_error *error)
{
    *file = calloc(1, sizeof **file);
    if (!*file)
        return attn_error_memory(error);
    (*file)->path = attn_path_join(directory, file_name);
    bool done = (*file)->path ? safetensors_open(&(*file)->tensors, (*file)->path, error) &&
                                    read_state(*file, state, error)
                              : attn_error_memory(error);
    if (!done) {
        training_file_close(*file);
        *file = NULL;
    }
    return done;
}

void training_file_close(struct training_file *file)
{
    if (!file)
        return;
    safetensors_close(file->tensors);
    free(file->path);
    free(file);
}

static bool has_shape(const struct stored_tensor *tensor, const struct parameter *item)
{
    bool same = tensor->type == STORED_F32 && tensor->rank == item->rank;
    for (int axis = 0; same && axis < item->rank; axis++)
        same = tensor->shape[axis] == item->shape[axis];
    return same;
}

/* Finds all tensors before any number is read. */
static bool find_tensors(const struct training_file *file, const struct parameters *parameters,
                         const struct stored_tensor **found, struct attn_error *error)
{
    size_t count = 0;
    for (enum part part = WEIGHTS; part < PARTS; part++)
        for (size_t i = 0; i < parameters->item_count; i++) {
            char name[TENSOR_NAME_SIZE];
            name_tensor(part, &parameters->items[i], name);
            const struct stored_tensor *tensor = safetensors_find(file->tensors, name);
            if (!tensor || !has_shape(tensor, &parameters->items[i]))
                return attn_error_set(error, "%s: tensor %s is not that of the model beside it",
                                      file->path, name);
            found[count++] = tensor;
        }
    return safetensors_count(file->tensors) == count ||
           refuse(file, "has tensors that the model beside it has not", error);
}

static bool check_sum(const struct training_file *file, const struct stored_tensor *const *tensors,
                      size_t count, struct attn_error *error)
{
    const struct safetensors *source = file->tensors;
    uint64_t wanted = 0;
    if (!read_number(file, "checksum", 16, &wanted, error))
        return false;
    uint64_t sum =
        add_text(safetensors_metadata(source, "settings"), safetensors_metadata(source, "step"),
                 safetensors_metadata(source, "tokens"), safetensors_metadata(source, "corpus"),
                 safetensors_metadata(source, "corpus_size"));
    for (size_t i = 0; i < count; i++)
        sum = checksum_add(sum, tensors[i]->data, tensors[i]->size);
    return sum == wanted ||
           refuse(file, "is damaged: its checksum is not that of its content", error);
}

bool training_file_load(struct training_file *file, const struct training_state *state,
                        struct parameters *parameters, struct optimizer *optimizer,
                        struct attn_error *error)
{
    size_t count = PARTS * parameters->item_count;
    const struct stored_tensor **tensors = calloc(count + 1, sizeof(void *));
    if (!tensors)
        return attn_error_memory(error);
    bool done =
        find_tensors(file, parameters, tensors, error) && check_sum(file, tensors, count, error);
    for (size_t n = 0; done && n < count; n++) {
        const struct parameter *item = &parameters->items[n % parameters->item_count];
        enum part part = (enum part)(n / parameters->item_count);
        done = stored_tensor_to_floats(tensors[n], part_numbers(part, item, parameters, optimizer),
                                       error);
    }
    if (done)
        optimizer->steps = state->step;
    free(tensors);
    return done;
}
