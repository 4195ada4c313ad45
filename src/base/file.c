#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_error.h"

bool attn_file_error(struct attn_error *error, const char *path, const char *what, int number)
{
    if (number == ENOENT)
        return attn_error_set(error, "%s: no such file", path);
    if (number == EISDIR)
        return attn_error_set(error, "%s: is a folder, expected a file", path);
    char reason[128];
    if (strerror_r(number, reason, sizeof reason) != 0)
        reason[0] = '\0';
    return attn_error_set(error, "%s: cannot be %s: %s", path, what, reason);
}

bool attn_file_map_open(struct attn_file_map *map, const char *path, struct attn_error *error)
{
    *map = (struct attn_file_map){0};
    /* Without O_NONBLOCK a pipe would wait here for a writer. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return attn_file_error(error, path, "read", errno);

    struct stat status;
    if (fstat(file, &status) != 0) {
        attn_file_error(error, path, "read", errno);
        goto fail;
    }
    if (S_ISDIR(status.st_mode)) {
        attn_file_error(error, path, "read", EISDIR);
        goto fail;
    }
    if (!S_ISREG(status.st_mode)) {
        attn_error_set(error, "%s: is not a regular file", path);
        goto fail;
    }
    if ((uintmax_t)status.st_size > SIZE_MAX) {
        attn_error_set(error, "%s: is too large for this machine", path);
        goto fail;
    }
    if (status.st_size > 0) {
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED) {
            attn_file_error(error, path, "mapped", errno);
            goto fail;
        }
        map->data = data;
        map->size = (size_t)status.st_size;
    }
    close(file);
    return true;

fail:
    close(file);
    return false;
}

void attn_file_map_close(struct attn_file_map *map)
{
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size);
    *map = (struct attn_file_map){0};
}

/* Reads on where a signal interrupted; −1 with errno set on failure. */
static ssize_t read_some(int file, char *data, size_t size)
{
    ssize_t count;
    do
        count = read(file, data, size);
    while (count < 0 && errno == EINTR);
    return count;
}

static bool read_to_end(int file, const char *path, size_t limit, char **data, size_t *size,
                        struct attn_error *error)
{
    struct stat status;
    size_t capacity = 4096;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        if ((uintmax_t)status.st_size > limit)
            return attn_error_set(error, "%s: has %jd bytes, at most %zu are allowed", path,
                                  (intmax_t)status.st_size, limit);
        /* One byte more than is there, so that the end is seen without growing. */
        capacity = (size_t)status.st_size + 1;
    }
    char *memory = malloc(capacity + 1);
    if (!memory)
        return attn_error_memory(error);
    size_t filled = 0;
    for (;;) {
        ssize_t count = read_some(file, memory + filled, capacity - filled);
        if (count < 0) {
            attn_file_error(error, path, "read", errno);
            goto fail;
        }
        if (count == 0)
            break;
        filled += (size_t)count;
        if (filled > limit) {
            attn_error_set(error, "%s: has more than the %zu bytes that are allowed", path, limit);
            goto fail;
        }
        if (filled == capacity) {
            char *larger =
                capacity <= (SIZE_MAX - 1) / 2 ? realloc(memory, capacity * 2 + 1) : NULL;
            if (!larger) {
                attn_error_memory(error);
                goto fail;
            }
            memory = larger;
            capacity *= 2;
        }
    }
    memory[filled] = '\0';
    *data = memory;
    *size = filled;
    return true;

fail:
    free(memory);
    return false;
}

bool attn_file_read(const char *path, size_t limit, char **data, size_t *size,
                    struct attn_error *error)
{
    *data = NULL;
    *size = 0;
    if (limit > SIZE_MAX - 2)
        limit = SIZE_MAX - 2;
    if (strcmp(path, "-") == 0)
        return read_to_end(STDIN_FILENO, "standard input", limit, data, size, error);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return attn_file_error(error, path, "read", errno);
    bool done = read_to_end(file, path, limit, data, size, error);
    close(file);
    return done;
}

char *attn_path_join(const char *directory, const char *name)
{
    size_t directory_size = strlen(directory);
    size_t name_size = strlen(name);
    bool slash = directory_size == 0 || directory[directory_size - 1] != '/';
    char *path = malloc(directory_size + slash + name_size + 1);
    if (!path)
        return NULL;
    memcpy(path, directory, directory_size);
    if (slash)
        path[directory_size] = '/';
    memcpy(path + directory_size + slash, name, name_size + 1);
    return path;
}

bool attn_path_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

bool attn_path_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}
