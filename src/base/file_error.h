/* What the system says of a file, as a message. */
#ifndef ATTN_BASE_FILE_ERROR_H
#define ATTN_BASE_FILE_ERROR_H

#include "base/error.h"

/* "PATH: no such file", "PATH: is a folder, …" or "PATH: cannot be read: Permission denied": `what`
 * is "read", "mapped" or "written", `number` an errno. Always returns false. */
bool attn_file_error(struct attn_error *error, const char *path, const char *what, int number);

#endif
