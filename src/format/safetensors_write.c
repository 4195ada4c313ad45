#include "format/safetensors_write.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/file_write.h"

enum { PREFIX_SIZE = 8, ALIGNMENT = 64, NUMBER_SIZE = 4, PIECE_NUMBERS = 16384 };

/* The bytes of the tensor's data; false for a shape that no file could hold. */
static bool data_size(const struct written_tensor *tensor, int64_t *size)
{
    *size = NUMBER_SIZE;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] < 0 || !attn_checked_multiply(*size, tensor->shape[i], size))
            return false;
    return true;
}

static void add_string(struct attn_buffer *header, const char *text)
{
    attn_buffer_add_json_string(header, text, strlen(text));
}

static void add_metadata(struct attn_buffer *header, const char *const *metadata, size_t text_count)
{
    attn_buffer_add_text(header, "\"__metadata__\":{");
    for (size_t i = 0; i < text_count; i++) {
        if (i > 0)
            attn_buffer_add_text(header, i % 2 == 0 ? "," : ":");
        add_string(header, metadata[i]);
    }
    attn_buffer_add_text(header, "}");
}

static void add_tensor(struct attn_buffer *header, const struct written_tensor *tensor,
                       int64_t begin, int64_t end)
{
    add_string(header, tensor->name);
    attn_buffer_add_text(header, ":{\"dtype\":\"F32\",\"shape\":[");
    for (int i = 0; i < tensor->rank; i++)
        attn_buffer_format(header, i > 0 ? ",%" PRId64 : "%" PRId64, tensor->shape[i]);
    attn_buffer_format(header, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", begin, end);
}

/* The JSON, with spaces behind it up to where the data shall begin. */
static bool make_header(struct attn_buffer *header, const struct written_tensor *tensors,
                        size_t count, const char *const *metadata, size_t text_count,
                        struct attn_error *error)
{
    attn_buffer_add_text(header, "{");
    if (text_count > 0)
        add_metadata(header, metadata, text_count);
    int64_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t size, end;
        if (!data_size(&tensors[i], &size) || !attn_checked_add(begin, size, &end))
            return attn_error_set(error, "tensor %.160s: the shape is too large", tensors[i].name);
        if (header->size > 1)
            attn_buffer_add_text(header, ",");
        add_tensor(header, &tensors[i], begin, end);
        begin = end;
    }
    attn_buffer_add_text(header, "}");
    while (!header->failed && (PREFIX_SIZE + header->size) % ALIGNMENT != 0)
        attn_buffer_add_text(header, " ");
    return !header->failed || attn_error_memory(error);
}

static bool write_header(struct attn_file_writer *writer, const struct attn_buffer *header,
                         struct attn_error *error)
{
    unsigned char prefix[PREFIX_SIZE];
    for (int i = 0; i < PREFIX_SIZE; i++)
        prefix[i] = (unsigned char)((uint64_t)header->size >> 8 * i);
    return attn_file_writer_add(writer, prefix, sizeof prefix, error) &&
           attn_file_writer_add(writer, header->data, header->size, error);
}

/* Little-endian, whatever the machine is; compilers make a copy of this loop where it is that. */
static void encode(const float *numbers, size_t count, unsigned char *bytes)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, numbers + i, sizeof bits);
        for (size_t byte = 0; byte < NUMBER_SIZE; byte++)
            bytes[NUMBER_SIZE * i + byte] = (unsigned char)(bits >> 8 * byte);
    }
}

static bool write_data(struct attn_file_writer *writer, const struct written_tensor *tensor,
                       struct attn_error *error)
{
    int64_t size;
    if (!data_size(tensor, &size))
        return attn_error_set(error, "tensor %.160s: the shape is too large", tensor->name);
    size_t left = (size_t)(size / NUMBER_SIZE);
    for (const float *numbers = tensor->data; left > 0;) {
        unsigned char bytes[NUMBER_SIZE * PIECE_NUMBERS];
        size_t count = left < PIECE_NUMBERS ? left : PIECE_NUMBERS;
        encode(numbers, count, bytes);
        if (!attn_file_writer_add(writer, bytes, NUMBER_SIZE * count, error))
            return false;
        numbers += count;
        left -= count;
    }
    return true;
}

static bool write_file(const char *path, const struct attn_buffer *header,
                       const struct written_tensor *tensors, size_t count, struct attn_error *error)
{
    struct attn_file_writer writer;
    if (!attn_file_writer_open(&writer, path, error))
        return false;
    bool written = write_header(&writer, header, error);
    for (size_t i = 0; written && i < count; i++)
        written = write_data(&writer, &tensors[i], error);
    if (written)
        return attn_file_writer_finish(&writer, error);
    attn_file_writer_abandon(&writer);
    return false;
}

bool safetensors_write(const char *path, const struct written_tensor *tensors, size_t count,
                       const char *const *metadata, size_t text_count, struct attn_error *error)
{
    struct attn_buffer header = {0};
    bool written = make_header(&header, tensors, count, metadata, text_count, error) &&
                   write_file(path, &header, tensors, count, error);
    attn_buffer_release(&header);
    return written;
}
