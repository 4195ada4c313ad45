#include "text/jinja_scan.h"

#include <string.h>

#include "text/jinja_letter.h"

/* Where the next tag begins, or the end. */
static size_t find_tag(const struct jinja_scan *scan)
{
    size_t at = scan->at;
    while (at < scan->size &&
           !(scan->source[at] == '{' && at + 1 < scan->size &&
             strchr("{%#", scan->source[at + 1]) && scan->source[at + 1] != '\0'))
        at++;
    return at;
}

/* The end of text[begin..end) before a tag: one that begins with "-" takes all white space, a
 * statement or comment that is the first of its line the blanks before it. */
static size_t trim_before(const struct jinja_scan *scan, size_t begin, size_t end)
{
    const char *source = scan->source;
    char kind = source[end + 1], sign = end + 2 < scan->size ? source[end + 2] : '\0';
    size_t at = end;
    if (sign == '-') {
        while (at > begin && jinja_is_space(source[at - 1]))
            at--;
        return at;
    }
    if (kind == '{' || sign == '+')
        return end;
    while (at > begin && (source[at - 1] == ' ' || source[at - 1] == '\t'))
        at--;
    bool is_first = at > begin ? source[at - 1] == '\n' : !scan->in_line;
    return is_first ? at : end;
}

static void scan_text(struct jinja_scan *scan, size_t end, struct jinja_piece *piece)
{
    size_t begin = scan->at;
    while (scan->trims && begin < end && jinja_is_space(scan->source[begin]))
        begin++;
    size_t last = end < scan->size ? trim_before(scan, begin, end) : end;
    *piece = (struct jinja_piece){PIECE_TEXT, scan->source + begin, last - begin};
    scan->at = end;
    scan->trims = false;
    scan->in_line = true;
}

/* Where the tag's closing signs stand; strings in it may hold anything. `size` where it has none.
 */
static size_t find_close(const struct jinja_scan *scan, size_t at, char kind)
{
    char first = kind == '{' ? '}' : kind, quote = '\0';
    for (; at + 1 < scan->size; at++) {
        char c = scan->source[at];
        if (quote != '\0' && c == '\\')
            at++;
        else if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (kind != '#' && (c == '\'' || c == '"'))
            quote = c;
        else if (c == first && scan->source[at + 1] == '}')
            return at;
    }
    return scan->size;
}

static bool scan_tag(struct jinja_scan *scan, struct jinja_piece *piece, struct attn_error *error)
{
    const char *source = scan->source;
    char kind = source[scan->at + 1];
    size_t begin = scan->at + 2, end = find_close(scan, begin, kind);
    if (end == scan->size)
        return attn_error_set(error, "it has a tag without an end");
    scan->at = end + 2;
    if (begin < end && (source[begin] == '-' || source[begin] == '+'))
        begin++;
    char sign = begin < end ? source[end - 1] : '\0';
    if (sign == '-' || sign == '+')
        end--;
    scan->trims = sign == '-';
    if (kind != '{' && sign != '-' && sign != '+' && scan->at < scan->size &&
        source[scan->at] == '\n') {
        scan->at++;
        scan->in_line = false;
    }
    enum jinja_piece_kind kinds = kind == '{' ? PIECE_OUTPUT : PIECE_STATEMENT;
    *piece = (struct jinja_piece){kind == '#' ? PIECE_TEXT : kinds, source + begin,
                                  kind == '#' ? 0 : end - begin};
    return true;
}

bool jinja_scan_next(struct jinja_scan *scan, struct jinja_piece *piece, struct attn_error *error)
{
    do {
        size_t tag = find_tag(scan);
        if (scan->at == scan->size) {
            *piece = (struct jinja_piece){PIECE_END, "", 0};
            return true;
        }
        if (tag > scan->at)
            scan_text(scan, tag, piece);
        else if (!scan_tag(scan, piece, error))
            return false;
    } while (piece->kind == PIECE_TEXT && piece->size == 0);
    return true;
}
