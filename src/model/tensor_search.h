/* Tensors of a checkpoint by the names that a model's code knows, with the spellings that files
 * have beside them. */
#ifndef ATTN_MODEL_TENSOR_SEARCH_H
#define ATTN_MODEL_TENSOR_SEARCH_H

#include "format/checkpoint.h"

struct tensor_search {
    const struct checkpoint *checkpoint;
    const char *prefix; /* "bert." where the file uses it, else "" */
};

/* `prefix` is taken where any tensor's name begins with it. */
struct tensor_search tensor_search_start(const struct checkpoint *checkpoint, const char *prefix);

/* The tensor prefix + name, or where the file has that one prefix + older (which may be NULL): the
 * matrix [rows][columns], or with rows = 0 the vector [columns]. Errors: "PATH: the file has no
 * tensor NAME", "PATH: NAME has shape [12, 4], expected [4, 12]". */
bool tensor_search_find(const struct tensor_search *search, const char *name, const char *older,
                        int64_t rows, int64_t columns, const struct stored_tensor **tensor,
                        struct attn_error *error);

/* That a tensor is [rows][columns], or with rows = 0 [columns]; path is for the message. */
bool tensor_search_check_shape(const char *path, const struct stored_tensor *tensor, int64_t rows,
                               int64_t columns, struct attn_error *error);

/* Whether the file has prefix + name. */
bool tensor_search_has(const struct tensor_search *search, const char *name);

#endif
