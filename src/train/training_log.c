#include "train/training_log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

#define LARGEST_LOG ((size_t)1 << 32)

static const char header[] = "step,loss,held_out,rate,norm,tokens_per_second\n";

/* Nine digits tell floats apart. A loss that was not evaluated is an empty field. */
static void format_row(const struct log_row *row, struct attn_buffer *text)
{
    attn_buffer_format(text, "%lld,%.9g,", (long long)row->step, row->loss);
    if (isfinite(row->held_out))
        attn_buffer_format(text, "%.9g", row->held_out);
    attn_buffer_format(text, ",%.9g,%.9g,%.1f\n", row->rate, row->norm, row->per_second);
}

/* Reads the number at *text and the `end` behind it; an empty field is NaN. */
static bool parse_field(const char **text, char end, double *value)
{
    char *behind = NULL;
    *value = **text == end ? NAN : strtod(*text, &behind);
    if (behind == *text)
        return false;
    if (behind)
        *text = behind;
    if (**text != end)
        return false;
    (*text)++;
    return true;
}

static bool parse_row(const char **text, struct log_row *row)
{
    double step;
    if (!parse_field(text, ',', &step) || !(step >= 1.0 && step <= 1e15))
        return false;
    row->step = (int64_t)step;
    return parse_field(text, ',', &row->loss) && parse_field(text, ',', &row->held_out) &&
           parse_field(text, ',', &row->rate) && parse_field(text, ',', &row->norm) &&
           parse_field(text, '\n', &row->per_second);
}

static bool keep_row(struct training_log *log, const struct log_row *row, struct attn_error *error)
{
    if (log->count == log->capacity) {
        size_t capacity = 2 * log->capacity + 64;
        struct log_row *grown = realloc(log->rows, capacity * sizeof *grown);
        if (!grown)
            return attn_error_memory(error);
        log->rows = grown;
        log->capacity = capacity;
    }
    log->rows[log->count++] = *row;
    return true;
}

/* The rows of a file up to step `last`. A last line without its end is one that was cut off. */
static bool keep_rows(struct training_log *log, const char *text, int64_t last,
                      struct attn_error *error)
{
    if (strncmp(text, header, strlen(header)) != 0)
        return attn_error_set(error,
                              "%s: is not the log of a training: its first line must be %.*s",
                              log->path, (int)strlen(header) - 1, header);
    text += strlen(header);
    for (size_t line = 2; strchr(text, '\n'); line++) {
        struct log_row row;
        if (!parse_row(&text, &row))
            return attn_error_set(error, "%s: line %zu cannot be read", log->path, line);
        if (row.step > last)
            break;
        if (!keep_row(log, &row, error))
            return false;
    }
    return true;
}

static bool read_rows(struct training_log *log, int64_t last, struct attn_error *error)
{
    char *text;
    size_t size;
    if (last == 0 || !attn_path_exists(log->path))
        return true;
    if (!attn_file_read(log->path, LARGEST_LOG, &text, &size, error))
        return false;
    bool done = keep_rows(log, text, last, error);
    free(text);
    return done;
}

static bool write_rows(const struct training_log *log, struct attn_error *error)
{
    struct attn_buffer text = {0};
    attn_buffer_add_text(&text, header);
    for (size_t i = 0; i < log->count; i++)
        format_row(&log->rows[i], &text);
    bool done = text.failed ? attn_error_memory(error)
                            : attn_file_write(log->path, text.data, text.size, error);
    attn_buffer_release(&text);
    return done;
}

bool training_log_open(struct training_log *log, const char *directory, int64_t last,
                       struct attn_error *error)
{
    *log = (struct training_log){.path = attn_path_join(directory, "training.csv")};
    if (!log->path)
        return attn_error_memory(error);
    if (read_rows(log, last, error) && write_rows(log, error))
        return true;
    training_log_close(log);
    return false;
}

void training_log_close(struct training_log *log)
{
    free(log->path);
    free(log->rows);
    *log = (struct training_log){0};
}

/* Behind what is there, or not at all. */
static bool append(const char *path, const char *text, size_t size, struct attn_error *error)
{
    FILE *file = fopen(path, "ab");
    long before = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    bool written = before >= 0 && fwrite(text, 1, size, file) == size && fflush(file) == 0;
    int number = errno;
    bool taken_back = written || before < 0 || ftruncate(fileno(file), before) == 0;
    if (file)
        fclose(file);
    if (written)
        return true;
    return attn_error_set(error, "%s: cannot be written: %s%s", path, strerror(number),
                          taken_back ? "" : "; its last line is cut");
}

bool training_log_add(struct training_log *log, const struct log_row *row, struct attn_error *error)
{
    struct attn_buffer text = {0};
    format_row(row, &text);
    bool done = text.failed
                    ? attn_error_memory(error)
                    : keep_row(log, row, error) && append(log->path, text.data, text.size, error);
    attn_buffer_release(&text);
    return done;
}
