/* From the tensors of a file to the parts of a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/causal_names.h"
#include "model/causal_parts.h"
#include "model/causal_transpose.h"
#include "model/tensor_search.h"

enum { NAME_SIZE = 128 }; /* the longest name is about 60 bytes */

struct binding {
    struct causal_model *model;
    const struct gguf *gguf; /* or the model's checkpoint */
    const struct causal_names *names;
    const char *path, *prefix;
    const struct stored_tensor **taken; /* [taken_count]: those that have their place */
    size_t taken_count;
    struct attn_error *error;
};

static size_t tensor_count(const struct binding *binding)
{
    return binding->gguf ? gguf_tensor_count(binding->gguf)
                         : checkpoint_count(binding->model->checkpoint);
}

static const struct stored_tensor *tensor_at(const struct binding *binding, size_t n)
{
    return binding->gguf ? gguf_tensor_at(binding->gguf, n)
                         : checkpoint_at(binding->model->checkpoint, n);
}

static const struct stored_tensor *look_up(const struct binding *binding, const char *name)
{
    return binding->gguf ? gguf_tensor(binding->gguf, name)
                         : checkpoint_find(binding->model->checkpoint, name);
}

/* The matrix [rows][columns], or with rows = 0 the vector [columns]. */
static bool take(struct binding *binding, const char *name, int64_t rows, int64_t columns,
                 const struct stored_tensor **tensor)
{
    *tensor = look_up(binding, name);
    if (!*tensor)
        return attn_error_set(binding->error, "%s: the file has no tensor %s", binding->path, name);
    if (!tensor_search_check_shape(binding->path, *tensor, rows, columns, binding->error))
        return false;
    binding->taken[binding->taken_count++] = *tensor;
    return true;
}

/* Those that every token meets. */
static void count(struct binding *binding, const struct stored_tensor *tensor)
{
    binding->model->configuration.settings.weight_bytes += (int64_t)tensor->size;
}

/* `bytes` bytes that live as long as the model. */
static void *reserve(struct binding *binding, size_t bytes)
{
    struct causal_memory *memory = NULL;
    if (bytes <= SIZE_MAX - sizeof *memory)
        memory = malloc(sizeof *memory + bytes);
    if (!memory) {
        attn_error_memory(binding->error);
        return NULL;
    }
    memory->next = binding->model->memory;
    binding->model->memory = memory;
    return memory->numbers;
}

static bool take_vector(struct binding *binding, const char *name, int64_t width,
                        const float **vector)
{
    const struct stored_tensor *tensor;
    if (!take(binding, name, 0, width, &tensor))
        return false;
    float *numbers = reserve(binding, (size_t)width * sizeof *numbers);
    if (!numbers)
        return false;
    struct attn_error fault;
    if (!stored_tensor_to_floats(tensor, numbers, &fault))
        return attn_error_set(binding->error, "%s: %s", binding->path, fault.message);
    count(binding, tensor);
    *vector = numbers;
    return true;
}

bool causal_matrix_type(enum stored_type stored, enum attn_matrix_type *type)
{
    static const struct {
        enum stored_type stored;
        enum attn_matrix_type type;
    } types[] = {
        {STORED_F32, ATTN_MATRIX_F32},   {STORED_F16, ATTN_MATRIX_F16},
        {STORED_BF16, ATTN_MATRIX_BF16}, {STORED_Q8_0, ATTN_MATRIX_Q8_0},
        {STORED_Q4_0, ATTN_MATRIX_Q4_0}, {STORED_Q4_1, ATTN_MATRIX_Q4_1},
        {STORED_Q5_0, ATTN_MATRIX_Q5_0}, {STORED_Q5_1, ATTN_MATRIX_Q5_1},
        {STORED_Q4_K, ATTN_MATRIX_Q4_K}, {STORED_Q5_K, ATTN_MATRIX_Q5_K},
        {STORED_Q6_K, ATTN_MATRIX_Q6_K},
    };
    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++)
        if (types[n].stored == stored) {
            *type = types[n].type;
            return true;
        }
    return false;
}

static bool check_matrix(const struct binding *binding, const struct stored_tensor *tensor,
                         const struct weight_matrix *matrix)
{
    const int64_t block = attn_matrix_block(matrix->type);
    if (matrix->in % block != 0)
        return attn_error_set(
            binding->error, "%s: %s has rows of %lld numbers, which are no whole blocks of %s",
            binding->path, tensor->name, (long long)matrix->in, stored_type_name(tensor->type));
    const uint64_t size =
        (uint64_t)matrix->out * (uint64_t)attn_matrix_row_bytes(matrix->type, matrix->in);
    return size == tensor->size ||
           attn_error_set(binding->error, "%s: %s has %zu bytes, expected %llu", binding->path,
                          tensor->name, tensor->size, (unsigned long long)size);
}

/* [out][in], in place unless the file has it transposed. */
static bool take_matrix(struct binding *binding, const char *name, int64_t out, int64_t in,
                        bool in_out, struct weight_matrix *matrix)
{
    const struct stored_tensor *tensor;
    if (!take(binding, name, in_out ? in : out, in_out ? out : in, &tensor))
        return false;
    *matrix = (struct weight_matrix){.data = tensor->data, .out = out, .in = in};
    if (!causal_matrix_type(tensor->type, &matrix->type))
        return attn_error_set(binding->error,
                              "%s: %s is %s, which is not supported: matrices are F32, F16, BF16 "
                              "or blocks of GGUF",
                              binding->path, tensor->name, stored_type_name(tensor->type));
    if (!check_matrix(binding, tensor, matrix))
        return false;
    count(binding, tensor);
    if (!in_out)
        return true;
    void *turned = reserve(binding, tensor->size);
    if (!turned)
        return false;
    causal_transpose(tensor->data, in, out, (size_t)attn_matrix_block_bytes(matrix->type), turned);
    matrix->data = turned;
    return true;
}

/* PART.weight or PART.bias of the whole model. */
static const char *name_of(const struct binding *binding, const char *part, const char *end,
                           char name[NAME_SIZE])
{
    const bool head = part == binding->names->head;
    snprintf(name, NAME_SIZE, "%s%s.%s", head ? "" : binding->prefix, part, end);
    return name;
}

static const char *name_in_layer(const struct binding *binding, int64_t n, const char *part,
                                 const char *end, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%s%s%lld.%s.%s", binding->prefix, binding->names->layer,
             (long long)n, part, end);
    return name;
}

static bool take_norm(struct binding *binding, const char *weight, const char *bias,
                      struct causal_norm *norm)
{
    const struct causal_settings *settings = &binding->model->configuration.settings;
    return take_vector(binding, weight, settings->width, &norm->gain) &&
           (settings->kind != MODEL_GPT2 ||
            take_vector(binding, bias, settings->width, &norm->shift));
}

static bool take_norm_in_layer(struct binding *binding, int64_t n, const char *part,
                               struct causal_norm *norm)
{
    char weight[NAME_SIZE], bias[NAME_SIZE];
    return take_norm(binding, name_in_layer(binding, n, part, "weight", weight),
                     name_in_layer(binding, n, part, "bias", bias), norm);
}

static bool take_linear(struct binding *binding, int64_t n, const char *part, int64_t out,
                        int64_t in, bool bias, struct causal_linear *linear)
{
    char name[NAME_SIZE];
    return take_matrix(binding, name_in_layer(binding, n, part, "weight", name), out, in,
                       binding->names->in_out, &linear->weight) &&
           (!bias || take_vector(binding, name_in_layer(binding, n, part, "bias", name), out,
                                 &linear->bias));
}

/* Rows begin..begin+out−1 of a layer. */
static struct causal_linear part_of(const struct causal_linear *joined, int64_t begin, int64_t out)
{
    struct causal_linear part = *joined;
    part.weight.out = out;
    part.weight.data = (const unsigned char *)joined->weight.data +
                       begin * attn_matrix_row_bytes(part.weight.type, part.weight.in);
    part.bias = joined->bias ? joined->bias + begin : NULL;
    return part;
}

static bool take_projections(struct binding *binding, int64_t n, struct causal_layer *layer)
{
    const struct causal_configuration *configuration = &binding->model->configuration;
    const struct causal_settings *settings = &configuration->settings;
    const struct causal_names *names = binding->names;
    const int64_t width = settings->width, queries = settings->heads * settings->head_size,
                  keys = settings->key_heads * settings->head_size;
    const bool bias = configuration->attention_bias;
    if (names->joined) {
        struct causal_linear joined = {0};
        if (!take_linear(binding, n, names->joined, queries + 2 * keys, width, bias, &joined))
            return false;
        layer->query = part_of(&joined, 0, queries);
        layer->key = part_of(&joined, queries, keys);
        layer->value = part_of(&joined, queries + keys, keys);
        return true;
    }
    return take_linear(binding, n, names->query, queries, width, bias, &layer->query) &&
           take_linear(binding, n, names->key, keys, width, bias, &layer->key) &&
           take_linear(binding, n, names->value, keys, width, bias, &layer->value);
}

static bool take_layer(struct binding *binding, int64_t n, struct causal_layer *layer)
{
    const struct causal_configuration *configuration = &binding->model->configuration;
    const struct causal_settings *settings = &configuration->settings;
    const struct causal_names *names = binding->names;
    const int64_t width = settings->width, inner = settings->inner;
    const bool bias = configuration->inner_bias;
    return take_norm_in_layer(binding, n, names->attention_norm, &layer->attention_norm) &&
           take_projections(binding, n, layer) &&
           take_linear(binding, n, names->output, width, settings->heads * settings->head_size,
                       configuration->attention_bias, &layer->output) &&
           take_norm_in_layer(binding, n, names->inner_norm, &layer->inner_norm) &&
           (!names->gate ||
            take_linear(binding, n, names->gate, inner, width, bias, &layer->gate)) &&
           take_linear(binding, n, names->up, inner, width, bias, &layer->up) &&
           take_linear(binding, n, names->down, width, inner, bias, &layer->down);
}

/* The head is the words; a file may hold it twice, but not two different ones. */
static bool tie_head(struct binding *binding, const struct stored_tensor *words)
{
    struct causal_model *model = binding->model;
    char name[NAME_SIZE];
    const struct stored_tensor *twin =
        look_up(binding, name_of(binding, binding->names->head, "weight", name));
    model->head = model->words;
    if (!twin)
        return true;
    if (!take(binding, name, model->words.out, model->words.in, &twin))
        return false;
    return (twin->type == words->type && memcmp(twin->data, words->data, words->size) == 0) ||
           attn_error_set(binding->error,
                          "%s: %s is not the same as %s, but config.json does not say "
                          "tie_word_embeddings false",
                          binding->path, name, words->name);
}

static bool take_tables(struct binding *binding)
{
    struct causal_model *model = binding->model;
    const struct causal_settings *settings = &model->configuration.settings;
    const struct causal_names *names = binding->names;
    const int64_t words = settings->vocabulary, width = settings->width;
    int64_t *bytes = &model->configuration.settings.weight_bytes;
    char name[NAME_SIZE];
    if (!take_matrix(binding, name_of(binding, names->words, "weight", name), words, width, false,
                     &model->words) ||
        (names->positions &&
         !take_matrix(binding, name_of(binding, names->positions, "weight", name),
                      settings->context, width, false, &model->positions)))
        return false;
    const struct stored_tensor *table = binding->taken[0];
    *bytes = 0; /* a token meets one row of each table */
    if (model->configuration.own_head)
        return take_matrix(binding, name_of(binding, names->head, "weight", name), words, width,
                           false, &model->head);
    count(binding, table);
    return tie_head(binding, table);
}

static bool take_layers(struct binding *binding)
{
    struct causal_model *model = binding->model;
    const int64_t layers = model->configuration.settings.layers;
    model->layers = calloc((size_t)layers, sizeof *model->layers);
    if (!model->layers)
        return attn_error_memory(binding->error);
    for (int64_t n = 0; n < layers; n++)
        if (!take_layer(binding, n, &model->layers[n]))
            return false;
    char weight[NAME_SIZE], bias[NAME_SIZE];
    return take_norm(binding, name_of(binding, binding->names->final_norm, "weight", weight),
                     name_of(binding, binding->names->final_norm, "bias", bias),
                     &model->final_norm);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static bool is_buffer(const struct causal_names *names, const char *name)
{
    for (size_t n = 0; n < sizeof names->buffers / sizeof names->buffers[0]; n++)
        if (names->buffers[n] && ends_with(name, names->buffers[n]))
            return true;
    return false;
}

static bool is_taken(const struct binding *binding, const struct stored_tensor *tensor)
{
    for (size_t n = 0; n < binding->taken_count; n++)
        if (binding->taken[n] == tensor)
            return true;
    return false;
}

/* A norm or a bias that the model's code does not know makes another model. A directory may hold
 * more than the model that tells the next token, beside its layers. */
static bool refuse_unknown(const struct binding *binding)
{
    char layers[NAME_SIZE];
    const int size = binding->gguf ? 0
                                   : snprintf(layers, sizeof layers, "%s%s", binding->prefix,
                                              binding->names->layer);
    const size_t tensors = tensor_count(binding);
    for (size_t n = 0; n < tensors && binding->taken_count < tensors; n++) {
        const struct stored_tensor *tensor = tensor_at(binding, n);
        if (strncmp(tensor->name, layers, (size_t)size) == 0 && !is_taken(binding, tensor) &&
            !is_buffer(binding->names, tensor->name))
            return attn_error_set(binding->error,
                                  "%s: the tensor %s is not one of a %s of %lld layers as its "
                                  "settings describe it: what it does is not supported",
                                  binding->path, tensor->name,
                                  binding->names->positions ? "GPT-2" : "Llama",
                                  (long long)binding->model->configuration.settings.layers);
    }
    return true;
}

bool causal_weights_bind(struct causal_model *model, const struct gguf *gguf,
                         struct attn_error *error)
{
    struct binding binding = {
        .model = model,
        .gguf = gguf,
        .names = causal_names_of(model->configuration.settings.kind, gguf != NULL),
        .path = gguf ? gguf_path(gguf) : checkpoint_path(model->checkpoint),
        .prefix = "",
        .error = error,
    };
    if (!gguf)
        binding.prefix = tensor_search_start(model->checkpoint, binding.names->prefix).prefix;
    binding.taken = calloc(tensor_count(&binding) + 1, sizeof(const struct stored_tensor *));
    if (!binding.taken)
        return attn_error_memory(error);
    const bool bound = take_tables(&binding) && take_layers(&binding) && refuse_unknown(&binding);
    free(binding.taken);
    return bound;
}
