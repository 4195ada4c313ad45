#include "look_labels.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/buffer.h"
#include "draw/label.h"

/* NUL-terminated. */
static char *copy(const char *bytes, size_t size)
{
    static const char nul_sign[] = "\xe2\x90\x80"; /* U+2400 */
    enum { SIGN_SIZE = sizeof nul_sign - 1 };
    char *label = size < SIZE_MAX / SIGN_SIZE ? malloc(size * SIGN_SIZE + 1) : NULL;
    if (!label)
        return NULL;
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i]) {
            label[used++] = bytes[i];
        } else {
            memcpy(label + used, nul_sign, SIGN_SIZE);
            used += SIGN_SIZE;
        }
    }
    label[used] = '\0';
    return label;
}

char *look_label_word(const char *bytes, size_t size)
{
    const bool space_before = size > 1 && bytes[0] == ' ' && bytes[1] != ' ';
    return copy(bytes + space_before, size - space_before);
}

static char *copy_spelling(const struct tokenizer *tokenizer, int32_t id)
{
    const char *piece = tokenizer_piece(tokenizer, id);
    return copy(piece ? piece : "", piece ? strlen(piece) : 0);
}

/* Vocabularies of byte pairs spell bytes by letters that stand for them, which nobody can read. */
static char *copy_bytes(const struct tokenizer *tokenizer, int32_t id)
{
    struct attn_buffer bytes = {0}, shown = {0};
    char *label = NULL;
    if (!tokenizer_decode(tokenizer, &id, 1, &bytes, NULL) || bytes.size == 0)
        label = copy_spelling(tokenizer, id); /* a special token stands for no bytes */
    else if (input_check_utf8("piece", bytes.data, bytes.size, NULL))
        label = copy(bytes.data, bytes.size);
    else {
        label_show(bytes.data, bytes.size, &shown);
        label = shown.failed ? NULL : copy(shown.data, shown.size);
    }
    attn_buffer_release(&bytes);
    attn_buffer_release(&shown);
    return label;
}

char *look_label_piece(const struct tokenizer *tokenizer, int32_t id)
{
    return tokenizer_get_kind(tokenizer) == TOKENIZER_BYTE_PAIR ? copy_bytes(tokenizer, id)
                                                                : copy_spelling(tokenizer, id);
}

static char *copy_word(const struct word *word, const struct text texts[2])
{
    return look_label_word(texts[word->text == 1].data + word->begin, word->end - word->begin);
}

bool look_labels_make(const struct look *look, const struct encoding *encoding,
                      const struct tokenizer *tokenizer, enum look_unit unit,
                      const struct text texts[2], struct look_labels *labels,
                      struct attn_error *error)
{
    *labels = (struct look_labels){.count = look->units,
                                   .unit = unit,
                                   .units = calloc(look->units, sizeof *labels->units),
                                   .words = calloc(look->units, sizeof *labels->words)};
    bool made = labels->units && labels->words;
    for (size_t i = 0; made && i < look->units; i++) {
        int32_t id = encoding->tokens[look->first_token[i]].id;
        labels->words[i] = look->word[i] == TOKEN_NO_WORD
                               ? look_label_piece(tokenizer, id)
                               : copy_word(&encoding->words[look->word[i]], texts);
        if (!labels->words[i])
            made = false;
        else if (unit == LOOK_PIECES)
            labels->units[i] = look_label_piece(tokenizer, id);
        else
            labels->units[i] = strdup(labels->words[i]);
        made = made && labels->units[i];
    }
    if (made)
        return true;
    look_labels_release(labels);
    return attn_error_memory(error);
}

void look_labels_release(struct look_labels *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        if (labels->units)
            free(labels->units[i]);
        if (labels->words)
            free(labels->words[i]);
    }
    free(labels->units);
    free(labels->words);
    *labels = (struct look_labels){0};
}

/* Newly allocated; two names are the same word in another case, or in another composition of its
 * accents, iff their folded forms are equal. NULL when there is no memory. */
static char *fold(const char *name, size_t size)
{
    utf8proc_uint8_t *folded = NULL;
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD;
    utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)name, (utf8proc_ssize_t)size, &folded, options);
    if (length < 0) {
        free(folded);
        return NULL;
    }
    return (char *)folded;
}

/* The pieces of one word stand side by side and are one occurrence of it. */
static bool continues_word(const struct look *look, size_t unit)
{
    return unit > 0 && look->word[unit] != TOKEN_NO_WORD &&
           look->word[unit] == look->word[unit - 1];
}

/* Chooses the units whose name folds to `wanted`: the occurrence-th (from 1), or all (0). Returns
 * how often the name occurs, or −1 without memory. */
static int64_t choose(const struct look *look, char *const *names, bool by_word, const char *wanted,
                      int64_t occurrence, bool *chosen)
{
    int64_t found = 0;
    for (size_t i = 0; i < look->units; i++) {
        if (by_word && continues_word(look, i)) {
            chosen[i] = chosen[i - 1];
            continue;
        }
        char *folded = fold(names[i], strlen(names[i]));
        if (!folded)
            return -1;
        bool same = strcmp(folded, wanted) == 0;
        free(folded);
        found += same;
        chosen[i] = same && (occurrence == 0 || occurrence == found);
    }
    return found;
}

/* By whole words, else by the names of units: those of pieces. */
static int64_t choose_by_name(const struct look *look, const struct look_labels *labels,
                              const char *name, size_t size, int64_t occurrence, bool *chosen)
{
    char *wanted = fold(name, size);
    if (!wanted)
        return -1;
    int64_t found = choose(look, labels->words, true, wanted, occurrence, chosen);
    if (found == 0)
        found = choose(look, labels->units, false, wanted, occurrence, chosen);
    free(wanted);
    return found;
}

/* "it#2" is the second "it": the length of its name and its number, or false for a plain name. */
static bool split_occurrence(const char *from, size_t *name_size, int64_t *occurrence)
{
    const char *sign = strrchr(from, '#');
    if (!sign || sign == from || !sign[1])
        return false;
    int64_t number = 0;
    for (const char *c = sign + 1; *c; c++) {
        if (!isdigit((unsigned char)*c))
            return false;
        number = number < INT32_MAX ? number * 10 + (*c - '0') : INT32_MAX;
    }
    *name_size = (size_t)(sign - from);
    *occurrence = number;
    return true;
}

static bool refuse_unknown(const struct look_labels *labels, const char *option, const char *from,
                           struct attn_error *error)
{
    enum { LIST_LIMIT = 300 };
    struct attn_buffer list = {0};
    for (size_t i = 0; i < labels->count; i++) {
        const char *separator = list.size > 0 ? ", " : "";
        if (list.size + strlen(labels->units[i]) > LIST_LIMIT) {
            attn_buffer_format(&list, "%s…", separator);
            break;
        }
        attn_buffer_format(&list, "%s%s", separator, labels->units[i]);
    }
    if (list.failed)
        attn_error_memory(error);
    else
        attn_error_set(error, "%s '%s' is not a %s of the text; its %s are: %s", option, from,
                       labels->unit == LOOK_PIECES ? "word or piece" : "word",
                       labels->unit == LOOK_PIECES ? "pieces" : "words",
                       list.data ? list.data : "");
    attn_buffer_release(&list);
    return false;
}

bool look_labels_choose_for(const struct look *look, const struct look_labels *labels,
                            const char *option, const char *from, bool *chosen,
                            struct attn_error *error)
{
    /* The whole of it first: "##2" may be a piece. */
    int64_t found = choose_by_name(look, labels, from, strlen(from), 0, chosen);
    if (found != 0)
        return found > 0 ? true : attn_error_memory(error);

    size_t size = 0;
    int64_t occurrence = 0;
    if (!split_occurrence(from, &size, &occurrence))
        return refuse_unknown(labels, option, from, error);
    found = choose_by_name(look, labels, from, size, occurrence, chosen);
    if (found < 0)
        return attn_error_memory(error);
    if (found == 0)
        return refuse_unknown(labels, option, from, error);
    if (occurrence < 1 || occurrence > found)
        return attn_error_set(error,
                              "%s %s: the text has '%.*s' %lld times, so the number must be from "
                              "1 to %lld",
                              option, from, (int)size, from, (long long)found, (long long)found);
    return true;
}

bool look_labels_choose(const struct look *look, const struct look_labels *labels, const char *from,
                        bool *chosen, struct attn_error *error)
{
    return look_labels_choose_for(look, labels, "--from", from, chosen, error);
}
