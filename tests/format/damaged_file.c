#include "damaged_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "test_data.h"

void damaged_file_create(struct damaged_file *damaged, const char *name)
{
    struct attn_error error;
    char *source = test_data_path(name);
    char *bytes;
    if (!attn_file_read(source, SIZE_MAX, &bytes, &damaged->size, &error))
        fail_msg("%s", error.message);
    free(source);
    damaged->valid = (unsigned char *)bytes;
    damaged->folder = scratch_folder_create();
    damaged->path = attn_path_join(damaged->folder, "damaged");
    damaged->file = open(damaged->path, O_WRONLY | O_CREAT, 0600);
    assert_true(damaged->file >= 0);
    damaged_file_restore(damaged);
}

void damaged_file_release(struct damaged_file *damaged)
{
    close(damaged->file);
    free(damaged->valid);
    free(damaged->path);
    scratch_folder_remove(damaged->folder);
}

void damaged_file_restore(const struct damaged_file *damaged)
{
    assert_int_equal(pwrite(damaged->file, damaged->valid, damaged->size, 0), damaged->size);
}

void damaged_file_cut(const struct damaged_file *damaged, size_t size)
{
    assert_int_equal(ftruncate(damaged->file, (off_t)size), 0);
}

void damaged_file_put(const struct damaged_file *damaged, size_t place, unsigned char byte)
{
    assert_int_equal(pwrite(damaged->file, &byte, 1, (off_t)place), 1);
}
