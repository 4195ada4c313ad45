/* A folder for one test's files. */
#ifndef ATTN_TESTS_SCRATCH_FOLDER_H
#define ATTN_TESTS_SCRATCH_FOLDER_H

#include <stddef.h>

/* Makes an empty folder under $TMPDIR or /tmp; fails the test where it cannot. The path is newly
 * allocated; scratch_folder_remove removes the folder with all in it and frees the path. */
char *scratch_folder_create(void);
void scratch_folder_remove(char *folder);

/* Writes FOLDER/NAME, making the folders that NAME leads through. */
void scratch_write(const char *folder, const char *name, const void *data, size_t size);
void scratch_write_text(const char *folder, const char *name, const char *text);

/* Makes the folder FOLDER/NAME, and those that it leads through. */
void scratch_make_folder(const char *folder, const char *name);

/* FOLDER/NAME as a file's text, newly allocated; fails the test where it cannot be read. */
char *scratch_read_text(const char *folder, const char *name);

/* Files and folders in FOLDER. */
size_t scratch_count(const char *folder);

#endif
