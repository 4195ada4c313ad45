#include "model_file.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "scratch_folder.h"

void write_safetensors(const char *folder, const char *name, const char *header, size_t data_size)
{
    size_t header_size = strlen(header);
    size_t size = 8 + header_size + data_size;
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)header_size >> 8 * i);
    memcpy(bytes + 8, header, header_size);
    for (size_t i = 0; i < data_size; i++)
        bytes[8 + header_size + i] = (unsigned char)i;
    scratch_write(folder, name, bytes, size);
    free(bytes);
}

void assert_tensor(const struct stored_tensor *tensor, const json_t *shape, const json_t *data)
{
    struct attn_error error;
    assert_int_equal(tensor->rank, json_array_size(shape));
    for (int i = 0; i < tensor->rank; i++)
        assert_int_equal(tensor->shape[i], json_integer_value(json_array_get(shape, (size_t)i)));

    size_t count = json_array_size(data);
    assert_int_equal(tensor->elements, count);
    float *floats = malloc((count + 1) * sizeof *floats);
    assert_non_null(floats);
    if (!stored_tensor_to_floats(tensor, floats, &error))
        fail_msg("%s", error.message);
    for (size_t i = 0; i < count; i++) {
        double expected = json_number_value(json_array_get(data, i));
        if (!((double)floats[i] == expected))
            fail_msg("%s[%zu] is %g, expected %g", tensor->name, i, (double)floats[i], expected);
    }
    free(floats);
}
