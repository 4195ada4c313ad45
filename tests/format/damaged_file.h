/* A valid file of tests/data, copied to where a test cuts it and changes its bytes. */
#ifndef ATTN_TESTS_DAMAGED_FILE_H
#define ATTN_TESTS_DAMAGED_FILE_H

#include <stddef.h>

struct damaged_file {
    unsigned char *valid; /* [size] */
    size_t size;
    char *folder;
    char *path; /* of the copy */
    int file;   /* open for writing there */
};

/* Copies tests/data/NAME. */
void damaged_file_create(struct damaged_file *damaged, const char *name);
void damaged_file_release(struct damaged_file *damaged);

void damaged_file_restore(const struct damaged_file *damaged);
void damaged_file_cut(const struct damaged_file *damaged, size_t size);
void damaged_file_put(const struct damaged_file *damaged, size_t place, unsigned char byte);

#endif
