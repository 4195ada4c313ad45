/* Small texts of the system under /proc and /sys, read without any allocation. */
#ifndef ATTN_BASE_SMALL_FILE_H
#define ATTN_BASE_SMALL_FILE_H

#include <stdbool.h>

enum { ATTN_SMALL_FILE = 8192, ATTN_SMALL_PATH = 4096 };

/* The first ATTN_SMALL_FILE − 1 bytes of FOLDER/NAME with a NUL behind them; false, and "", where
 * it cannot be read or its path has ATTN_SMALL_PATH bytes or more. */
bool attn_small_file_read(const char *folder, const char *name, char text[ATTN_SMALL_FILE]);

#endif
