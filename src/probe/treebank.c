#include "probe/treebank.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define FILE_LIMIT ((size_t)256 << 20)

/* Columns of a line, and those that are read. */
enum { COLUMNS = 10, COLUMN_ID = 0, COLUMN_FORM = 1, COLUMN_HEAD = 6, COLUMN_RELATION = 7 };

struct reader {
    const char *name; /* of the file */
    struct treebank *treebank;
    size_t line;
    struct treebank_sentence sentence; /* that is being read; count 0: none */
    size_t furthest, furthest_line;    /* the largest place in it that a line names */
    struct attn_error *error;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static bool
refuse(const struct reader *reader, const char *format, ...)
{
    char reason[ATTN_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return attn_error_set(reader->error, "%s: line %zu: %s", reader->name, reader->line, reason);
}

/* A line's content without its end; *at moves behind it. Whoever gets it may write to it, and to
 * the byte behind it. */
static char *take_line(char *content, size_t size, size_t *at, size_t *length)
{
    char *line = content + *at;
    const char *newline = memchr(line, '\n', size - *at);
    *length = newline ? (size_t)(newline - line) : size - *at;
    *at += *length + (newline ? 1 : 0);
    if (*length > 0 && line[*length - 1] == '\r')
        --*length;
    return line;
}

/* A decimal number of at most INT32_MAX, which is more than a file of FILE_LIMIT has words; *end is
 * what stands behind it. */
static bool take_number(const char *text, size_t *number, const char **end)
{
    *number = 0;
    *end = text;
    for (; **end >= '0' && **end <= '9'; ++*end) {
        *number = *number * 10 + (size_t)(**end - '0');
        if (*number > INT32_MAX)
            return false;
    }
    return *end != text;
}

static void note_place(struct reader *reader, size_t place)
{
    if (place > reader->furthest) {
        reader->furthest = place;
        reader->furthest_line = reader->line;
    }
}

enum line_kind { LINE_WRONG, LINE_WORD, LINE_LEFT_OUT };

/* "3" is a word; "3-4" tells of two words behind it, and "2.1" is an empty node behind word 2. */
static enum line_kind check_id(struct reader *reader, const char *id)
{
    const size_t next = reader->sentence.count + 1;
    const char *end;
    size_t number, second;
    if (take_number(id, &number, &end)) {
        if (*end == '\0' && number == next)
            return LINE_WORD;
        if (*end == '-' && number == next && take_number(end + 1, &second, &end) && *end == '\0' &&
            second > number) {
            note_place(reader, second);
            return LINE_LEFT_OUT;
        }
        if (*end == '.' && number + 1 == next && take_number(end + 1, &second, &end) &&
            *end == '\0')
            return LINE_LEFT_OUT;
    }
    refuse(reader, "the word's number is '%.32s', expected %zu", id, next);
    return LINE_WRONG;
}

/* Cuts the subtype off. */
static bool check_relation(const struct reader *reader, char *relation)
{
    for (const char *c = relation; *c; c++)
        if (*c <= ' ' || *c > '~')
            return refuse(reader,
                          "the relation '%.32s' must be of letters, digits and signs of ASCII",
                          relation);
    relation[strcspn(relation, ":")] = '\0';
    return relation[0] || refuse(reader, "the word has no relation (column 8)");
}

static bool add_word(struct reader *reader, char *const columns[COLUMNS])
{
    const size_t own = reader->sentence.count + 1;
    const char *end;
    size_t head;
    if (columns[COLUMN_FORM][0] == '\0')
        return refuse(reader, "the word has no form (column 2)");
    if (!take_number(columns[COLUMN_HEAD], &head, &end) || *end)
        return refuse(reader, "the head is '%.32s', but must be a word's number, or 0 for the root",
                      columns[COLUMN_HEAD]);
    if (head == own)
        return refuse(reader, "word %zu is its own head", own);
    if (!check_relation(reader, columns[COLUMN_RELATION]))
        return false;
    note_place(reader, head);

    struct treebank *treebank = reader->treebank;
    if (reader->sentence.count == 0) {
        reader->sentence.first = treebank->word_count;
        reader->sentence.line = reader->line;
    }
    reader->sentence.count++;
    treebank->words[treebank->word_count++] =
        (struct treebank_word){columns[COLUMN_FORM], columns[COLUMN_RELATION], head};
    return true;
}

static bool read_fields(struct reader *reader, char *line)
{
    char *columns[COLUMNS];
    size_t count = 0;
    for (char *next = line; next; count++) {
        char *tab = strchr(next, '\t');
        if (count < COLUMNS)
            columns[count] = next;
        if (tab)
            *tab++ = '\0';
        next = tab;
    }
    if (count != COLUMNS)
        return refuse(reader,
                      "a word of CoNLL-U has %d columns with tabs between them, this line has %zu",
                      COLUMNS, count);
    const enum line_kind kind = check_id(reader, columns[COLUMN_ID]);
    return kind == LINE_LEFT_OUT || (kind == LINE_WORD && add_word(reader, columns));
}

/* Behind the last line of a sentence, when its length is known. */
static bool end_sentence(struct reader *reader)
{
    struct treebank *treebank = reader->treebank;
    const size_t count = reader->sentence.count;
    if (reader->furthest > count) {
        reader->line = reader->furthest_line;
        return refuse(reader, "word %zu is named, but the sentence has %zu", reader->furthest,
                      count);
    }
    if (count > 0)
        treebank->sentences[treebank->sentence_count++] = reader->sentence;
    reader->sentence = (struct treebank_sentence){0};
    reader->furthest = 0;
    return true;
}

static bool read_line(struct reader *reader, char *line, size_t length)
{
    if (memchr(line, '\0', length))
        return refuse(reader, "a NUL byte stands in it: not a text file");
    line[length] = '\0';
    if (length == 0)
        return end_sentence(reader);
    if (line[0] != '#')
        return read_fields(reader, line);
    return reader->sentence.count == 0 ||
           refuse(reader, "a comment between words; an empty line ends a sentence");
}

/* Lines that begin with a digit: no fewer than there are words, nor than sentences. */
static size_t count_lines(const char *content, size_t size)
{
    size_t lines = 0;
    for (size_t at = 0; at < size; at++)
        lines += (at == 0 || content[at - 1] == '\n') && content[at] >= '0' && content[at] <= '9';
    return lines;
}

static bool read_content(struct reader *reader, size_t size)
{
    struct treebank *treebank = reader->treebank;
    size_t at = size >= 3 && memcmp(treebank->content, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const size_t lines = count_lines(treebank->content + at, size - at);
    treebank->words = calloc(lines + 1, sizeof *treebank->words);
    treebank->sentences = calloc(lines + 1, sizeof *treebank->sentences);
    if (!treebank->words || !treebank->sentences)
        return attn_error_memory(reader->error);
    while (at < size) {
        size_t length;
        char *line = take_line(treebank->content, size, &at, &length);
        reader->line++;
        if (!read_line(reader, line, length))
            return false;
    }
    if (!end_sentence(reader))
        return false;
    return treebank->sentence_count > 0 ||
           attn_error_set(reader->error, "%s: has no sentence; expected CoNLL-U", reader->name);
}

bool treebank_read(struct treebank *treebank, const char *path, struct attn_error *error)
{
    *treebank = (struct treebank){0};
    size_t size;
    struct reader reader = {
        .name = strcmp(path, "-") == 0 ? "standard input" : path,
        .treebank = treebank,
        .error = error,
    };
    if (!attn_file_read(path, FILE_LIMIT, &treebank->content, &size, error))
        return false;
    if (read_content(&reader, size))
        return true;
    treebank_release(treebank);
    return false;
}

void treebank_release(struct treebank *treebank)
{
    free(treebank->sentences);
    free(treebank->words);
    free(treebank->content);
    *treebank = (struct treebank){0};
}

void treebank_add_text(const struct treebank *treebank, const struct treebank_sentence *sentence,
                       struct attn_buffer *text)
{
    for (size_t n = 0; n < sentence->count; n++) {
        attn_buffer_add(text, " ", n > 0);
        attn_buffer_add_text(text, treebank->words[sentence->first + n].form);
    }
}
