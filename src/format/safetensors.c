#include "format/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"

enum { PREFIX_SIZE = 8, HEADER_LIMIT = 100 * 1000 * 1000 };

static const char metadata_key[] = "__metadata__";

struct safetensors {
    struct attn_file_map map;
    json_t *header;                      /* owns the names */
    struct stored_tensor *tensors;       /* [count], by data */
    const struct stored_tensor **sorted; /* [count], by name */
    size_t count;
};

/* The file while it is being read, and the way to say what is wrong with it. */
struct reader {
    const char *path;
    struct attn_error *error;
    const unsigned char *data; /* behind the header */
    size_t data_size;
};

/* "PATH: tensor NAME" and what follows; a name of any length leaves room for that. */
#define REFUSE_TENSOR(reader, name, format, ...)                                                   \
    attn_error_set((reader)->error, "%s: tensor %.160s" format, (reader)->path, (name), __VA_ARGS__)

static bool read_header(struct safetensors *file, struct reader *reader)
{
    const struct attn_file_map *map = &file->map;
    if (map->size < PREFIX_SIZE)
        return attn_error_set(reader->error, "%s: the file is shorter than 8 bytes", reader->path);
    uint64_t length = 0;
    for (int i = PREFIX_SIZE; i-- > 0;)
        length = length << 8 | map->data[i];
    size_t available = map->size - PREFIX_SIZE;

    /* The limit is told where it is what a writer broke, the end of the file where no file could be
     * so long or this one is not. */
    if (length > HEADER_LIMIT && length <= INT64_MAX)
        return attn_error_set(reader->error,
                              "%s: header length %" PRIu64 " is above the limit of %d",
                              reader->path, length, HEADER_LIMIT);
    if (length > available)
        return attn_error_set(reader->error,
                              "%s: header length %" PRIu64 " is beyond the end of the file",
                              reader->path, length);

    const char *text = (const char *)map->data + PREFIX_SIZE;
    if (length == 0 || text[0] != '{')
        return attn_error_set(reader->error, "%s: the header is not valid: it begins without '{'",
                              reader->path);
    json_error_t problem;
    file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &problem);
    if (!file->header && json_error_code(&problem) == json_error_out_of_memory)
        return attn_error_memory(reader->error);
    if (!file->header)
        return attn_error_set(reader->error, "%s: the header is not valid JSON: byte %d: %s",
                              reader->path, problem.position, problem.text);
    reader->data = map->data + PREFIX_SIZE + length;
    reader->data_size = available - (size_t)length;
    return true;
}

static bool check_metadata(const struct safetensors *file, const struct reader *reader)
{
    json_t *metadata = json_object_get(file->header, metadata_key);
    bool valid = !metadata || json_is_object(metadata);
    const char *key;
    json_t *value;
    json_object_foreach (metadata, key, value) {
        valid = valid && json_is_string(value);
    }
    if (!valid)
        return attn_error_set(reader->error,
                              "%s: the header is not valid: metadata holds strings only",
                              reader->path);
    return true;
}

static bool is_size(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool read_shape(const struct reader *reader, const json_t *shape,
                       struct stored_tensor *tensor)
{
    if (!json_is_array(shape))
        return REFUSE_TENSOR(reader, tensor->name, ": %s", "shape is not an array");
    size_t rank = json_array_size(shape);
    if (rank > STORED_MAX_RANK)
        return REFUSE_TENSOR(reader, tensor->name, " has %zu dimensions, at most %d are possible",
                             rank, STORED_MAX_RANK);
    tensor->rank = (int)rank;

    /* Zeros are left out of the product that must not overflow: then no product of some of the
     * dimensions does. */
    int64_t bytes = (int64_t)stored_type_size(tensor->type);
    tensor->elements = 1;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dimension = json_array_get(shape, i);
        if (!is_size(dimension))
            return REFUSE_TENSOR(reader, tensor->name,
                                 ": dimension %zu of its shape is not a whole number of at least 0",
                                 i);
        tensor->shape[i] = json_integer_value(dimension);
        if (tensor->shape[i] > 0 && !attn_checked_multiply(bytes, tensor->shape[i], &bytes))
            return REFUSE_TENSOR(reader, tensor->name, ": %s", "the shape is too large");
        tensor->elements *= tensor->shape[i];
    }
    return true;
}

/* Reads begin and end; whether they lie within the file shows when all tensors are known. */
static bool read_offsets(const struct reader *reader, const json_t *offsets, const char *name,
                         uint64_t *begin, uint64_t *end)
{
    const json_t *first = json_array_get(offsets, 0);
    const json_t *second = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !is_size(first) || !is_size(second))
        return REFUSE_TENSOR(reader, name, ": %s",
                             "data_offsets are not two whole numbers of at least 0");
    *begin = (uint64_t)json_integer_value(first);
    *end = (uint64_t)json_integer_value(second);
    if (*begin > *end)
        return REFUSE_TENSOR(reader, name, ": the offsets %" PRIu64 ", %" PRIu64 " are reversed",
                             *begin, *end);
    return true;
}

/* A tensor with the place that the header gives it. */
struct placed_tensor {
    struct stored_tensor tensor; /* without data */
    uint64_t begin, end;         /* from the end of the header */
};

static bool read_tensor(const struct reader *reader, const char *name, const json_t *entry,
                        struct placed_tensor *placed)
{
    struct stored_tensor *tensor = &placed->tensor;
    tensor->name = name;
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    if (!type)
        return REFUSE_TENSOR(reader, name, " has no %s", "dtype");
    if (!stored_type_from_name(type, &tensor->type))
        return REFUSE_TENSOR(reader, name, ": dtype %.40s is not known", type);
    if (!read_shape(reader, json_object_get(entry, "shape"), tensor) ||
        !read_offsets(reader, json_object_get(entry, "data_offsets"), name, &placed->begin,
                      &placed->end))
        return false;

    uint64_t needed = (uint64_t)tensor->elements * stored_type_size(tensor->type);
    uint64_t given = placed->end - placed->begin;
    if (needed != given) {
        char shape[128];
        stored_tensor_shape_text(tensor, shape, sizeof shape);
        return REFUSE_TENSOR(reader, name,
                             ": shape %s of %s needs %" PRIu64 " bytes, the offsets give %" PRIu64,
                             shape, type, needed, given);
    }
    return true;
}

/* By place; at one place empty tensors come first, then by name. */
static int compare_place(const void *a, const void *b)
{
    const struct placed_tensor *x = a;
    const struct placed_tensor *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->tensor.name, y->tensor.name);
}

static bool refuse_hole(const struct reader *reader, uint64_t begin, uint64_t end)
{
    return attn_error_set(reader->error, "%s: bytes %" PRIu64 " to %" PRIu64 " belong to no tensor",
                          reader->path, begin, end);
}

/* Tensors sorted by place must cover the data from its first byte to its last, each byte once. */
static bool check_coverage(const struct reader *reader, const struct placed_tensor *placed,
                           size_t count)
{
    uint64_t covered = 0;
    for (size_t i = 0; i < count; i++) {
        if (placed[i].begin > covered)
            return refuse_hole(reader, covered, placed[i].begin);
        if (placed[i].begin < covered)
            return REFUSE_TENSOR(reader, placed[i].tensor.name, " overlaps tensor %.160s",
                                 placed[i - 1].tensor.name);
        covered = placed[i].end;
    }
    if (covered > reader->data_size)
        return attn_error_set(reader->error, "%s: the data ends %" PRIu64 " bytes early",
                              reader->path, covered - reader->data_size);
    if (covered < reader->data_size)
        return refuse_hole(reader, covered, reader->data_size);
    return true;
}

/* Fills file->tensors and file->sorted from checked places. */
static bool keep_tensors(struct safetensors *file, const struct reader *reader,
                         const struct placed_tensor *placed, size_t count)
{
    file->tensors = calloc(count + 1, sizeof *file->tensors);
    file->sorted = calloc(count + 1, sizeof *file->sorted);
    if (!file->tensors || !file->sorted)
        return attn_error_memory(reader->error);
    file->count = count;
    for (size_t i = 0; i < count; i++) {
        file->tensors[i] = placed[i].tensor;
        file->tensors[i].data = reader->data + placed[i].begin;
        file->tensors[i].size = (size_t)(placed[i].end - placed[i].begin);
        file->sorted[i] = &file->tensors[i];
    }
    stored_tensors_sort(file->sorted, count);
    return true;
}

static bool read_tensors(struct safetensors *file, const struct reader *reader)
{
    size_t entries = json_object_size(file->header);
    struct placed_tensor *placed = calloc(entries + 1, sizeof *placed);
    if (!placed)
        return attn_error_memory(reader->error);
    size_t count = 0;
    bool valid = true;
    const char *name;
    json_t *entry;
    json_object_foreach (file->header, name, entry) {
        if (valid && strcmp(name, metadata_key) != 0)
            valid = read_tensor(reader, name, entry, &placed[count++]);
    }
    if (valid) {
        qsort(placed, count, sizeof *placed, compare_place);
        valid = check_coverage(reader, placed, count) && keep_tensors(file, reader, placed, count);
    }
    free(placed);
    return valid;
}

bool safetensors_open(struct safetensors **file, const char *path, struct attn_error *error)
{
    *file = NULL;
    struct safetensors *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_error_memory(error);
    struct reader reader = {.path = path, .error = error};
    if (!attn_file_map_open(&opened->map, path, error) || !read_header(opened, &reader) ||
        !check_metadata(opened, &reader) || !read_tensors(opened, &reader)) {
        safetensors_close(opened);
        return false;
    }
    *file = opened;
    return true;
}

void safetensors_close(struct safetensors *file)
{
    if (!file)
        return;
    free(file->sorted);
    free(file->tensors);
    json_decref(file->header);
    attn_file_map_close(&file->map);
    free(file);
}

size_t safetensors_count(const struct safetensors *file)
{
    return file->count;
}

const struct stored_tensor *safetensors_at(const struct safetensors *file, size_t index)
{
    return &file->tensors[index];
}

const struct stored_tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    return stored_tensors_find(file->sorted, file->count, name);
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, metadata_key), key));
}
