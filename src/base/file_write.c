#include "base/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_error.h"

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

static bool set_write_error(struct attn_error *error, const char *path, int number)
{
    if (number == ENOENT)
        return attn_error_set(error, "%s: cannot be written: there is no such folder", path);
    return attn_file_error(error, path, "written", number);
}

/* A regular file, or one that is not there yet: opens the temporary file beside it. False with
 * errno set on failure. */
static bool open_temporary(struct attn_file_writer *writer, const struct stat *existing)
{
    if (existing && faccessat(AT_FDCWD, writer->path, W_OK, AT_EACCESS) != 0)
        return false; /* a rename would not ask */
    writer->target = follow_links(writer->path);
    if (!writer->target)
        return false;
    writer->file = create_beside(writer->target, &writer->temporary);
    return writer->file >= 0 && (!existing || fchmod(writer->file, existing->st_mode & 0777) == 0);
}

/* False with errno set on failure. */
static bool open_any(struct attn_file_writer *writer)
{
    struct stat existing, output;
    if (stat(writer->path, &existing) != 0)
        return open_temporary(writer, NULL);
    if (S_ISDIR(existing.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == existing.st_dev &&
        output.st_ino == existing.st_ino) {
        /* /dev/stdout, wherever it leads: a file of its own there would lose what stands before. */
        writer->file = STDOUT_FILENO;
        return true;
    }
    if (S_ISREG(existing.st_mode))
        return open_temporary(writer, &existing);
    writer->file = open(writer->path, O_WRONLY | O_CLOEXEC);
    return writer->file >= 0;
}

bool attn_file_writer_open(struct attn_file_writer *writer, const char *path,
                           struct attn_error *error)
{
    *writer = (struct attn_file_writer){.path = path, .file = -1};
    if (open_any(writer))
        return true;
    int number = errno;
    attn_file_writer_abandon(writer);
    return set_write_error(error, path, number);
}

bool attn_file_check_write(const char *path, struct attn_error *error)
{
    struct stat existing;
    const bool is_special =
        stat(path, &existing) == 0 && !S_ISREG(existing.st_mode) && !S_ISDIR(existing.st_mode);
    struct attn_file_writer writer;
    if (is_special) /* opening a pipe waits for its reader, and closing it is an end for him */
        return true;
    if (!attn_file_writer_open(&writer, path, error))
        return false;
    attn_file_writer_abandon(&writer);
    return true;
}

bool attn_file_writer_add(struct attn_file_writer *writer, const void *data, size_t size,
                          struct attn_error *error)
{
    return write_all(writer->file, data, size) || set_write_error(error, writer->path, errno);
}

/* False with errno set on failure. */
static bool close_file(struct attn_file_writer *writer)
{
    int file = writer->file;
    writer->file = -1;
    return file < 0 || file == STDOUT_FILENO || close(file) == 0;
}

bool attn_file_writer_finish(struct attn_file_writer *writer, struct attn_error *error)
{
    bool written = !writer->temporary || fsync(writer->file) == 0;
    written = written && close_file(writer) &&
              (!writer->temporary || rename(writer->temporary, writer->target) == 0);
    if (!written) {
        set_write_error(error, writer->path, errno);
        attn_file_writer_abandon(writer);
        return false;
    }
    free(writer->temporary);
    free(writer->target);
    *writer = (struct attn_file_writer){.file = -1};
    return true;
}

void attn_file_writer_abandon(struct attn_file_writer *writer)
{
    (void)close_file(writer);
    if (writer->temporary)
        unlink(writer->temporary);
    free(writer->temporary);
    free(writer->target);
    *writer = (struct attn_file_writer){.file = -1};
}

bool attn_file_write(const char *path, const void *data, size_t size, struct attn_error *error)
{
    struct attn_file_writer writer;
    if (!attn_file_writer_open(&writer, path, error))
        return false;
    if (attn_file_writer_add(&writer, data, size, error))
        return attn_file_writer_finish(&writer, error);
    attn_file_writer_abandon(&writer);
    return false;
}
