#include "draw/text_order.h"

#include <fribidi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* What FriBidi works on: arrays over the code points of one text. */
struct paragraph {
    FriBidiStrIndex size;
    FriBidiChar *plain, *shaped;
    FriBidiCharType *types;
    FriBidiBracketType *brackets;
    FriBidiLevel *levels;
    FriBidiArabicProp *joining;
    FriBidiStrIndex *logical; /* [place on the line] → place in the text */
};

static bool paragraph_create(struct paragraph *text, size_t size)
{
    size_t room = size ? size : 1;
    *text = (struct paragraph){
        .plain = calloc(room, sizeof *text->plain),
        .shaped = calloc(room, sizeof *text->shaped),
        .types = calloc(room, sizeof *text->types),
        .brackets = calloc(room, sizeof *text->brackets),
        .levels = calloc(room, sizeof *text->levels),
        .joining = calloc(room, sizeof *text->joining),
        .logical = calloc(room, sizeof *text->logical),
    };
    return text->plain && text->shaped && text->types && text->brackets && text->levels &&
           text->joining && text->logical;
}

static void paragraph_release(struct paragraph *text)
{
    free(text->plain);
    free(text->shaped);
    free(text->types);
    free(text->brackets);
    free(text->levels);
    free(text->joining);
    free(text->logical);
}

static void decode(const char *utf8, size_t size, struct paragraph *text)
{
    for (size_t at = 0; at < size;) {
        int32_t code;
        utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)utf8 + at,
                                                 (utf8proc_ssize_t)(size - at), &code);
        if (used <= 0) {
            code = 0xfffd;
            used = 1;
        }
        text->plain[text->size++] = (FriBidiChar)code;
        at += (size_t)used;
    }
}

/* The Unicode bidirectional algorithm, then Arabic joining. False when memory ran out. */
static bool reorder(struct paragraph *text)
{
    FriBidiStrIndex size = text->size;
    FriBidiParType direction = FRIBIDI_PAR_ON; /* of the first letter that has one */
    fribidi_get_bidi_types(text->plain, size, text->types);
    fribidi_get_bracket_types(text->plain, size, text->types, text->brackets);
    if (!fribidi_get_par_embedding_levels_ex(text->types, text->brackets, size, &direction,
                                             text->levels))
        return false;
    memcpy(text->shaped, text->plain, (size_t)size * sizeof *text->shaped);
    fribidi_get_joining_types(text->plain, size, text->joining);
    fribidi_join_arabic(text->types, size, text->levels, text->joining);
    fribidi_shape(FRIBIDI_FLAGS_DEFAULT | FRIBIDI_FLAGS_ARABIC, text->levels, size, text->joining,
                  text->shaped);
    for (FriBidiStrIndex i = 0; i < size; i++)
        text->logical[i] = i;
    return fribidi_reorder_line(FRIBIDI_FLAGS_DEFAULT, text->types, size, 0, direction,
                                text->levels, NULL, text->logical) != 0;
}

static bool is_never_seen(int32_t plain, FriBidiChar shaped)
{
    return utf8proc_category(plain) == UTF8PROC_CATEGORY_CF ||
           (plain >= 0xfe00 && plain <= 0xfe0f) || shaped == FRIBIDI_CHAR_FILL;
}

struct ordered_letter *text_order_create(const char *text, size_t *count)
{
    size_t size = strlen(text);
    struct paragraph paragraph;
    struct ordered_letter *letters = calloc(size ? size : 1, sizeof *letters);
    *count = 0;
    bool complete = paragraph_create(&paragraph, size) && letters && size < INT32_MAX;
    if (complete) {
        decode(text, size, &paragraph);
        complete = !paragraph.size || reorder(&paragraph);
    }
    for (FriBidiStrIndex i = 0; complete && i < paragraph.size; i++) {
        FriBidiStrIndex from = paragraph.logical[i];
        int32_t plain = (int32_t)paragraph.plain[from];
        if (!is_never_seen(plain, paragraph.shaped[from]))
            letters[(*count)++] = (struct ordered_letter){(int32_t)paragraph.shaped[from], plain};
    }
    paragraph_release(&paragraph);
    if (!complete) {
        free(letters);
        return NULL;
    }
    return letters;
}
