#include "tiny_model.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

struct tiny_model tiny_model_read(const char *name)
{
    json_t *file = test_data_json("cases/models.json");
    const json_t *found = case_field(file, "models", name);
    struct tiny_model model = {
        .config = json_deep_copy(case_field(found, "config", NULL)),
        .tensors = json_deep_copy(case_field(found, "tensors", NULL)),
    };
    json_decref(file);
    return model;
}

void tiny_model_free(struct tiny_model *model)
{
    json_decref(model->config);
    json_decref(model->tensors);
}

void tiny_model_rename(struct tiny_model *model, const char *prefix, bool old_norms)
{
    json_t *renamed = json_object();
    const char *name;
    json_t *tensor;
    json_object_foreach (model->tensors, name, tensor) {
        char text[256];
        const char *norm = strstr(name, "LayerNorm.");
        if (norm && old_norms)
            snprintf(text, sizeof text, "%s%.*s%s", prefix, (int)(norm - name) + 10, name,
                     strcmp(norm + 10, "weight") == 0 ? "gamma" : "beta");
        else
            snprintf(text, sizeof text, "%s%s", prefix, name);
        json_object_set(renamed, text, tensor);
    }
    json_decref(model->tensors);
    model->tensors = renamed;
}

static void add_number(struct attn_buffer *data, double number, enum tiny_storage storage)
{
    const float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const uint16_t upper = (uint16_t)(bits >> 16);
    switch (storage) {
    case TINY_F32:
    case TINY_F32_MISALIGNED:
        attn_buffer_add(data, &single, sizeof single);
        break;
    case TINY_F64:
        attn_buffer_add(data, &number, sizeof number);
        break;
    case TINY_BF16:
        assert_int_equal(bits & 0xffff, 0);
        attn_buffer_add(data, &upper, sizeof upper);
        break;
    }
}

static const char *const type_names[] = {"F32", "F32", "F64", "BF16"};

char *tiny_model_save(const struct tiny_model *model)
{
    json_t *header = json_object();
    struct attn_buffer data = {0};
    const char *name;
    json_t *tensor;
    json_object_foreach (model->tensors, name, tensor) {
        const json_t *numbers = case_field(tensor, "data", NULL);
        size_t begin = data.size;
        for (size_t n = 0; n < json_array_size(numbers); n++)
            add_number(&data, json_number_value(json_array_get(numbers, n)), model->storage);
        json_object_set_new(header, name,
                            json_pack("{s:s, s:O, s:[I, I]}", "dtype", type_names[model->storage],
                                      "shape", case_field(tensor, "shape", NULL), "data_offsets",
                                      (json_int_t)begin, (json_int_t)data.size));
    }

    char *text = json_dumps(header, JSON_COMPACT);
    assert_non_null(text);
    /* 8 bytes of length, the header, and spaces up to where the data shall begin. */
    size_t size = strlen(text), begin = (8 + size + 7) / 8 * 8;
    if (model->storage == TINY_F32_MISALIGNED)
        begin += 1;
    uint64_t header_size = begin - 8;
    struct attn_buffer file = {0};
    attn_buffer_add(&file, &header_size, sizeof header_size);
    attn_buffer_add(&file, text, size);
    while (file.size < begin)
        attn_buffer_add(&file, " ", 1);
    if (data.size)
        attn_buffer_add(&file, data.data, data.size);
    assert_false(file.failed || data.failed);

    char *folder = scratch_folder_create();
    char *config = json_dumps(model->config, 0);
    scratch_write_text(folder, "config.json", config);
    scratch_write(folder, "model.safetensors", file.data, file.size);
    free(config);
    free(text);
    json_decref(header);
    attn_buffer_release(&data);
    attn_buffer_release(&file);
    return folder;
}
