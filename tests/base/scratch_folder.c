#define _XOPEN_SOURCE 700 /* nftw */
#include "scratch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cmocka_test.h"

char *scratch_folder_create(void)
{
    const char *parent = getenv("TMPDIR");
    char *path = attn_path_join(parent && *parent ? parent : "/tmp", "attn-test-XXXXXX");
    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    return path;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void scratch_folder_remove(char *folder)
{
    assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(folder);
}

/* Makes each folder that stands before a '/' of path, from `done` on. */
static void make_parents(char *path, size_t done)
{
    for (char *slash = path + done; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

void scratch_write(const char *folder, const char *name, const void *data, size_t size)
{
    char *path = attn_path_join(folder, name);
    make_parents(path, strlen(folder) + 1);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(path);
}

void scratch_write_text(const char *folder, const char *name, const char *text)
{
    scratch_write(folder, name, text, strlen(text));
}

void scratch_make_folder(const char *folder, const char *name)
{
    char *path = attn_path_join(folder, name);
    make_parents(path, strlen(folder) + 1);
    assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
    free(path);
}

char *scratch_read_text(const char *folder, const char *name)
{
    char *path = attn_path_join(folder, name);
    struct attn_error error;
    char *text;
    size_t size;
    assert_true(attn_file_read(path, SIZE_MAX, &text, &size, &error));
    free(path);
    return text;
}

size_t scratch_count(const char *folder)
{
    DIR *open_folder = opendir(folder);
    assert_non_null(open_folder);
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(open_folder));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open_folder);
    return count;
}
