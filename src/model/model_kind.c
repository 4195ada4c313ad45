#include "model/model_kind.h"

#include <string.h>

#include "model/config_fields.h"

static bool take_type(void *user, const json_t *object, struct attn_error *error)
{
    enum language_model_kind *kind = user;
    const char *type;
    if (!config_text(object, "model_type", true, &type, error))
        return false;
    if (strcmp(type, "gpt2") == 0)
        *kind = LANGUAGE_MODEL_GPT2;
    else if (strcmp(type, "bert") == 0)
        *kind = LANGUAGE_MODEL_BERT;
    else
        return attn_error_set(error,
                              CONFIG_FILE_NAME ": model_type %.64s is not supported, only bert and "
                                               "gpt2 are",
                              type);
    return true;
}

bool model_kind_read(enum language_model_kind *kind, const char *directory,
                     struct attn_error *error)
{
    return config_read(directory, take_type, kind, error);
}
