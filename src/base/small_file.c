#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool attn_small_file_read(const char *folder, const char *name, char text[ATTN_SMALL_FILE])
{
    char path[ATTN_SMALL_PATH];
    text[0] = '\0';
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || length >= (int)sizeof path)
        return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    size_t used = 0;
    ssize_t got = 1;
    while (used < ATTN_SMALL_FILE - 1 && got != 0) {
        got = read(file, text + used, ATTN_SMALL_FILE - 1 - used);
        if (got < 0 && errno != EINTR)
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    close(file);
    text[got < 0 ? 0 : used] = '\0';
    return got >= 0;
}
