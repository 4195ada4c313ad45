#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool write_bytes(const char *bytes, size_t size, struct attn_error *error)
{
    while (size > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EPIPE)
            return attn_error_set(error, "%s", "");
        if (written < 0)
            return attn_error_set(error, "cannot write to standard output: %s", strerror(errno));
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

bool output_write(const struct attn_buffer *buffer, struct attn_error *error)
{
    if (buffer->failed)
        return attn_error_memory(error);
    return write_bytes(buffer->data, buffer->size, error);
}

bool output_write_text(const char *text, struct attn_error *error)
{
    return write_bytes(text, strlen(text), error);
}

bool output_has_color(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) && terminal && terminal[0] &&
           strcmp(terminal, "dumb") != 0;
}

bool progress_is_shown(void)
{
    return isatty(STDERR_FILENO);
}

void progress_show(const char *verb, size_t done, size_t total, const char *units)
{
    enum { BAR_WIDTH = 30 };
    if (!progress_is_shown())
        return;
    char bar[BAR_WIDTH + 1];
    size_t full = total > 0 ? (size_t)((double)done / (double)total * BAR_WIDTH) : BAR_WIDTH;
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', full < BAR_WIDTH ? full : BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\rattn %s: [%s] %zu of %zu %s", verb, bar, done, total, units);
}

void progress_end(void)
{
    if (progress_is_shown())
        fputs("\r\x1b[K", stderr);
}
