#include "model/tensor_search.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 192 }; /* the longest name of a model here is about 70 bytes */

struct tensor_search tensor_search_start(const struct checkpoint *checkpoint, const char *prefix)
{
    struct tensor_search search = {checkpoint, ""};
    for (size_t n = 0; n < checkpoint_count(checkpoint); n++)
        if (strncmp(checkpoint_at(checkpoint, n)->name, prefix, strlen(prefix)) == 0)
            search.prefix = prefix;
    return search;
}

static const struct stored_tensor *look_up(const struct tensor_search *search, const char *name,
                                           char spelled[NAME_SIZE])
{
    snprintf(spelled, NAME_SIZE, "%s%s", search->prefix, name);
    return checkpoint_find(search->checkpoint, spelled);
}

bool tensor_search_check_shape(const char *path, const struct stored_tensor *tensor, int64_t rows,
                               int64_t columns, struct attn_error *error)
{
    if (rows == 0 ? tensor->rank == 1 && tensor->shape[0] == columns
                  : tensor->rank == 2 && tensor->shape[0] == rows && tensor->shape[1] == columns)
        return true;

    char found[64], expected[64];
    stored_tensor_shape_text(tensor, found, sizeof found);
    if (rows == 0)
        snprintf(expected, sizeof expected, "[%lld]", (long long)columns);
    else
        snprintf(expected, sizeof expected, "[%lld, %lld]", (long long)rows, (long long)columns);
    return attn_error_set(error, "%s: %s has shape %s, expected %s", path, tensor->name, found,
                          expected);
}

bool tensor_search_find(const struct tensor_search *search, const char *name, const char *older,
                        int64_t rows, int64_t columns, const struct stored_tensor **tensor,
                        struct attn_error *error)
{
    char spelled[NAME_SIZE], older_spelled[NAME_SIZE];
    *tensor = look_up(search, name, spelled);
    if (!*tensor && older)
        *tensor = look_up(search, older, older_spelled);
    if (!*tensor)
        return attn_error_set(error, "%s: the file has no tensor %s",
                              checkpoint_path(search->checkpoint), spelled);
    return tensor_search_check_shape(checkpoint_path(search->checkpoint), *tensor, rows, columns,
                                     error);
}

bool tensor_search_has(const struct tensor_search *search, const char *name)
{
    char spelled[NAME_SIZE];
    return look_up(search, name, spelled) != NULL;
}
