#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* "PATH: no such file", "PATH: is a folder, …" or "PATH: cannot be read: Permission denied". */
static bool set_system_error(struct attn_error *error, const char *path, const char *what,
                             int number)
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
        return set_system_error(error, path, "read", errno);

    struct stat status;
    if (fstat(file, &status) != 0) {
        set_system_error(error, path, "read", errno);
        goto fail;
    }
    if (S_ISDIR(status.st_mode)) {
        set_system_error(error, path, "read", EISDIR);
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
            set_system_error(error, path, "mapped", errno);
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
            set_system_error(error, path, "read", errno);
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
        return set_system_error(error, path, "read", errno);
    bool done = read_to_end(file, path, limit, data, size, error);
    close(file);
    return done;
}

/* Writes all of it; false with errno set on failure. */
static bool write_all(int file, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t count = write(file, data, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        data += count;
        size -= (size_t)count;
    }
    return true;
}

/* The path that a chain of symbolic links ends at, there or not, in newly allocated memory: a
 * rename must replace the file and not the link to it. NULL with errno set on failure. */
static char *follow_links(const char *path)
{
    enum { MAXIMUM_LINKS = 40 };
    char *current = strdup(path);
    for (int links = 0; current; links++) {
        char target[4096];
        ssize_t length = readlink(current, target, sizeof target - 1);
        if (length < 0)
            return current; /* not a link, or nothing there */
        if (links == MAXIMUM_LINKS || (size_t)length == sizeof target - 1) {
            free(current);
            errno = ELOOP;
            return NULL;
        }
        target[length] = '\0';
        char *next;
        char *slash = strrchr(current, '/');
        if (target[0] == '/' || !slash) {
            next = strdup(target);
        } else {
            slash[1] = '\0';
            next = attn_path_join(current, target);
        }
        free(current);
        current = next;
    }
    errno = ENOMEM;
    return NULL;
}

/* Creates a file of a new name in the folder of `target`, with the permissions that the umask
 * leaves. −1 with errno set on failure; else *name is newly allocated. */
static int create_beside(const char *target, char **name)
{
    enum { TRIES = 1000 };
    const char *slash = strrchr(target, '/');
    size_t folder_size = slash ? (size_t)(slash + 1 - target) : 0;
    size_t name_size = folder_size + 64;
    *name = malloc(name_size);
    if (!*name)
        return -1;
    memcpy(*name, target, folder_size);
    for (int i = 0; i < TRIES; i++) {
        snprintf(*name + folder_size, name_size - folder_size, ".attn-%ld-%d.tmp", (long)getpid(),
                 i);
        int file = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0)
            return file;
        if (errno != EEXIST)
            break;
    }
    int number = errno;
    free(*name);
    *name = NULL;
    errno = number;
    return -1;
}

/* Closes the file; false where that or what was done before failed, with errno of the first. */
static bool close_written(int file, bool written)
{
    int number = errno;
    if (close(file) != 0 && written)
        return false;
    errno = number;
    return written;
}

/* Writes a regular file at `target` whole or not at all; `existing` is its status or NULL. False
 * with errno set on failure. */
static bool replace_file(const char *target, const struct stat *existing, const void *data,
                         size_t size)
{
    char *temporary;
    int file = create_beside(target, &temporary);
    if (file < 0)
        return false;
    bool written = (!existing || fchmod(file, existing->st_mode & 0777) == 0) &&
                   write_all(file, data, size) && fsync(file) == 0;
    written = close_written(file, written) && rename(temporary, target) == 0;
    int number = errno;
    if (!written)
        unlink(temporary);
    free(temporary);
    errno = number;
    return written;
}

/* Writes to a pipe, terminal or device. */
static bool write_directly(const char *path, const void *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    return close_written(file, write_all(file, data, size));
}

bool attn_file_write(const char *path, const void *data, size_t size, struct attn_error *error)
{
    struct stat existing;
    struct stat output;
    bool exists = stat(path, &existing) == 0;
    bool written;
    if (exists && S_ISDIR(existing.st_mode)) {
        return set_system_error(error, path, "written", EISDIR);
    } else if (exists && fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == existing.st_dev &&
               output.st_ino == existing.st_ino) {
        /* /dev/stdout, wherever it leads: a file of its own there would lose what stands before. */
        written = write_all(STDOUT_FILENO, data, size);
    } else if (exists && !S_ISREG(existing.st_mode)) {
        written = write_directly(path, data, size);
    } else if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) {
        written = false; /* a rename would not ask */
    } else {
        char *target = follow_links(path);
        written = target && replace_file(target, exists ? &existing : NULL, data, size);
        int number = errno;
        free(target);
        errno = number;
    }
    if (written)
        return true;
    if (errno == ENOENT)
        return attn_error_set(error, "%s: cannot be written: there is no such folder", path);
    return set_system_error(error, path, "written", errno);
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
