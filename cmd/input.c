#include "input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/unicode.h"

#define FILE_LIMIT ((size_t)64 << 20)

static const char *file_argument(const struct shared_options *options)
{
    if (options->file)
        return options->file;
    bool standard_input = options->operand_count == 1 && strcmp(options->operands[0], "-") == 0;
    return standard_input ? "-" : NULL;
}

bool input_check(const struct shared_options *options, enum input_form form,
                 struct attn_error *error)
{
    int count = options->operand_count;
    if (options->file && count > 0)
        return attn_error_set(error, "-f %s and the text '%s' exclude each other", options->file,
                              options->operands[0]);
    if (!options->file && count == 0)
        return attn_error_set(error,
                              "a text is missing; give it as TEXT, -f FILE, or - for standard "
                              "input");
    if (form == INPUT_ONE_TEXT && count > 1)
        return attn_error_set(error,
                              "one text is expected, %d are given ('%s', '%s'); put quotes "
                              "around the text",
                              count, options->operands[0], options->operands[1]);
    for (int i = 0; i < count && count > 1; i++)
        if (strcmp(options->operands[i], "-") == 0)
            return attn_error_set(error, "'-' reads standard input and must be the only text");
    return true;
}

bool input_check_utf8(const char *name, const char *data, size_t size, struct attn_error *error)
{
    size_t invalid = utf8_invalid_offset(data, size);
    return invalid == size ||
           attn_error_set(error, "%s: byte %zu is not valid UTF-8", name, invalid);
}

static bool take_arguments(const struct shared_options *options, struct input *input,
                           struct attn_error *error)
{
    input->count = (size_t)options->operand_count;
    input->texts = calloc(input->count, sizeof *input->texts);
    if (!input->texts)
        return attn_error_memory(error);
    for (size_t i = 0; i < input->count; i++) {
        const char *argument = options->operands[i];
        char name[32];
        input_describe(input, i, name, sizeof name);
        input->texts[i] = (struct text){argument, strlen(argument)};
        if (!input_check_utf8(name, argument, input->texts[i].size, error))
            return false;
    }
    return true;
}

/* The size of a line without its line end, given that of the line with it. */
static size_t without_line_end(const char *line, size_t size)
{
    if (size > 0 && line[size - 1] == '\n') {
        size--;
        if (size > 0 && line[size - 1] == '\r')
            size--;
    }
    return size;
}

static bool take_lines(struct input *input, size_t size, struct attn_error *error)
{
    const char *content = input->content;
    size_t lines = 1;
    for (size_t i = 0; i + 1 < size; i++)
        lines += content[i] == '\n';
    input->texts = calloc(lines, sizeof *input->texts);
    if (!input->texts)
        return attn_error_memory(error);

    size_t begin = 0;
    for (; input->count < lines; input->count++) {
        const char *newline = memchr(content + begin, '\n', size - begin);
        size_t end = newline ? (size_t)(newline - content) + 1 : size;
        const char *line = content + begin;
        input->texts[input->count] = (struct text){line, without_line_end(line, end - begin)};
        begin = end;
    }
    return true;
}

static bool check_lines(const struct input *input, struct attn_error *error)
{
    for (size_t i = 0; i < input->count; i++) {
        char name[256];
        input_describe(input, i, name, sizeof name);
        if (!input_check_utf8(name, input->texts[i].data, input->texts[i].size, error))
            return false;
    }
    return true;
}

static bool take_file(const char *path, struct input *input, struct attn_error *error)
{
    size_t size = 0;
    input->file = strcmp(path, "-") == 0 ? "standard input" : path;
    if (!attn_file_read(path, FILE_LIMIT, &input->content, &size, error))
        return false;
    if (input->form == INPUT_LINES)
        return take_lines(input, size, error) && check_lines(input, error);

    if (!input_check_utf8(input->file, input->content, size, error))
        return false;
    input->texts = calloc(1, sizeof *input->texts);
    if (!input->texts)
        return attn_error_memory(error);
    input->texts[0] = (struct text){input->content, without_line_end(input->content, size)};
    input->count = 1;
    return true;
}

bool input_read(const struct shared_options *options, enum input_form form, struct input *input,
                struct attn_error *error)
{
    *input = (struct input){.form = form};
    const char *path = file_argument(options);
    bool read = path ? take_file(path, input, error) : take_arguments(options, input, error);
    if (!read)
        input_release(input);
    return read;
}

void input_release(struct input *input)
{
    free(input->texts);
    free(input->content);
    *input = (struct input){0};
}

void input_describe(const struct input *input, size_t index, char *name, size_t size)
{
    if (input->file && input->form == INPUT_LINES)
        snprintf(name, size, "%s: line %zu", input->file, index + 1);
    else if (input->file)
        snprintf(name, size, "%s", input->file);
    else if (input->count > 1)
        snprintf(name, size, "text %zu", index + 1);
    else
        snprintf(name, size, "the text");
}
