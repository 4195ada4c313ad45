/* End tokens and the chat template: what generation_config.json, tokenizer_config.json and GGUF's
 * metadata say of a model beside its weights. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_file.h"
#include "model/config_fields.h"
#include "model/model_source.h"

enum {
    FILE_LIMIT = 1 << 24,     /* bytes; lists of added tokens make some of these files long */
    TEMPLATE_LIMIT = 1 << 20, /* bytes; real ones have a few thousand */
    END_LIMIT = 1000          /* end tokens that a list names; real ones name a few */
};

static bool add_end_id(struct model_manners *manners, int32_t id, struct attn_error *error)
{
    for (size_t n = 0; n < manners->end_count; n++)
        if (manners->end_ids[n] == id)
            return true;
    int32_t *ids = realloc(manners->end_ids, (manners->end_count + 1) * sizeof *ids);
    if (!ids)
        return attn_error_memory(error);
    ids[manners->end_count++] = id;
    manners->end_ids = ids;
    return true;
}

static bool take_template(struct model_manners *manners, const char *text, size_t size,
                          struct attn_error *error)
{
    manners->chat_template = malloc(size + 1);
    if (!manners->chat_template)
        return attn_error_memory(error);
    memcpy(manners->chat_template, text, size);
    manners->chat_template[size] = '\0';
    manners->chat_template_size = size;
    return true;
}

static bool add_json_id(struct model_manners *manners, const json_t *number, const char *path,
                        struct attn_error *error)
{
    json_int_t id = json_is_integer(number) ? json_integer_value(number) : -1;
    if (id < 0 || id > INT32_MAX)
        return attn_error_set(
            error, "%s: eos_token_id is not a token's number, or a list of such, from 0 to %d",
            path, INT32_MAX);
    return add_end_id(manners, (int32_t)id, error);
}

/* eos_token_id of the file where it is there. */
static bool read_json_end_ids(struct model_manners *manners, const char *directory,
                              const char *name, bool *told, struct attn_error *error)
{
    *told = false;
    char *path = attn_path_join(directory, name);
    if (!path)
        return attn_error_memory(error);
    json_t *object = NULL;
    bool done = !attn_path_exists(path) || attn_json_read_object(path, FILE_LIMIT, &object, error);
    const json_t *field = json_object_get(object, "eos_token_id");
    if (done && field && !json_is_null(field)) {
        *told = true;
        if (json_array_size(field) > END_LIMIT)
            done =
                attn_error_set(error, "%s: eos_token_id names %zu tokens, at most %d are possible",
                               path, json_array_size(field), END_LIMIT);
        else if (!json_is_array(field))
            done = add_json_id(manners, field, path, error);
        for (size_t n = 0; done && n < json_array_size(field); n++)
            done = add_json_id(manners, json_array_get(field, n), path, error);
    }
    json_decref(object);
    free(path);
    return done;
}

static bool read_template_file(struct model_manners *manners, const char *directory,
                               struct attn_error *error)
{
    char *path = attn_path_join(directory, "chat_template.jinja");
    if (!path)
        return attn_error_memory(error);
    bool done =
        !attn_path_exists(path) || attn_file_read(path, TEMPLATE_LIMIT, &manners->chat_template,
                                                  &manners->chat_template_size, error);
    free(path);
    return done;
}

/* Of [{"name": …, "template": …}, …] the template named "default", NULL where there is none. */
static const json_t *find_default(const json_t *list)
{
    for (size_t n = 0; n < json_array_size(list); n++) {
        const json_t *entry = json_array_get(list, n);
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_object_get(entry, "template");
    }
    return NULL;
}

static bool read_json_template(struct model_manners *manners, const char *directory,
                               struct attn_error *error)
{
    char *path = attn_path_join(directory, "tokenizer_config.json");
    if (!path)
        return attn_error_memory(error);
    json_t *object = NULL;
    bool done = !attn_path_exists(path) || attn_json_read_object(path, FILE_LIMIT, &object, error);
    const json_t *field = json_object_get(object, "chat_template");
    if (json_is_array(field))
        field = find_default(field);
    if (done && json_is_string(field))
        done = take_template(manners, json_string_value(field), json_string_length(field), error);
    else if (done && field && !json_is_null(field))
        done =
            attn_error_set(error, "%s: chat_template is neither a text nor a list of such", path);
    json_decref(object);
    free(path);
    return done;
}

static bool read_directory(struct model_manners *manners, const char *directory,
                           struct attn_error *error)
{
    bool told;
    return read_json_end_ids(manners, directory, "generation_config.json", &told, error) &&
           (told || read_json_end_ids(manners, directory, CONFIG_FILE_NAME, &told, error)) &&
           read_template_file(manners, directory, error) &&
           (manners->chat_template || read_json_template(manners, directory, error));
}

static bool read_gguf(struct model_manners *manners, const struct gguf *gguf,
                      struct attn_error *error)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    for (size_t n = 0; n < sizeof keys / sizeof *keys; n++) {
        int64_t id;
        if (!gguf_has(gguf, keys[n]))
            continue;
        if (!gguf_integer(gguf, keys[n], GGUF_REQUIRED, &id, error))
            return false;
        if (id < 0 || id > INT32_MAX)
            return attn_error_set(error, "%s: %s is %lld, expected a token's number",
                                  gguf_path(gguf), keys[n], (long long)id);
        if (!add_end_id(manners, (int32_t)id, error))
            return false;
    }
    struct gguf_string text = {0};
    return gguf_text(gguf, "tokenizer.chat_template", GGUF_OPTIONAL, &text, error) &&
           (!text.text || take_template(manners, text.text, text.size, error));
}

bool model_source_manners(const struct model_source *source, struct model_manners *manners,
                          struct attn_error *error)
{
    *manners = (struct model_manners){0};
    const struct gguf *gguf = model_source_gguf(source);
    bool done = gguf ? read_gguf(manners, gguf, error)
                     : read_directory(manners, model_source_path(source), error);
    if (!done)
        model_manners_release(manners);
    return done;
}

void model_manners_release(struct model_manners *manners)
{
    free(manners->end_ids);
    free(manners->chat_template);
    *manners = (struct model_manners){0};
}
