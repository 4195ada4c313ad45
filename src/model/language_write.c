/* A language model as a Hugging Face directory. */
#include <stdlib.h>

#include "base/file.h"
#include "format/safetensors_write.h"
#include "model/language_parts.h"

static bool write_weights(const struct parameters *parameters, const char *directory,
                          struct attn_error *error)
{
    /* What Transformers asks of a file before it reads it. */
    static const char *const metadata[] = {"format", "pt"};
    char *path = attn_path_join(directory, "model.safetensors");
    struct written_tensor *tensors = calloc(parameters->item_count, sizeof *tensors);
    bool written = path && tensors ? true : attn_error_memory(error);
    for (size_t n = 0; written && n < parameters->item_count; n++) {
        const struct parameter *parameter = &parameters->items[n];
        tensors[n] = (struct written_tensor){parameter->name, parameter->rank, parameter->shape,
                                             parameters->values + parameter->begin};
    }
    written =
        written && safetensors_write(path, tensors, parameters->item_count, metadata, 2, error);
    free(tensors);
    free(path);
    return written;
}

bool language_model_write(const struct language_model *model, const char *directory,
                          int32_t special_id, struct attn_error *error)
{
    return write_weights(&model->parameters, directory, error) &&
           model->kind->write_config(model, directory, special_id, error);
}
