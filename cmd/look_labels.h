/* What stands in the rows and columns of a look, by name, and how --from chooses among them. */
#ifndef ATTN_CMD_LOOK_LABELS_H
#define ATTN_CMD_LOOK_LABELS_H

#include "input.h"
#include "probe/look.h"

/* A name for each unit: words as the text writes them, pieces and added tokens as the vocabulary
 * does. A NUL byte, which ends a C string, is shown as its sign. */
struct look_labels {
    size_t count;
    enum look_unit unit;
    char **units; /* [count] */
    char **words; /* [count]: the whole word that a unit is (a piece of); its own name for an added
                     token */
};

/* One such name, newly allocated; NULL when there is no memory. Words of byte-level BPE begin with
 * the space before them, which is no part of their name. Its pieces are the bytes that they stand
 * for, a space before them too, and where those are part of a character as label_show shows them:
 * \xF0\x9F. */
char *look_label_word(const char *bytes, size_t size);
char *look_label_piece(const struct tokenizer *tokenizer, int32_t id);

/* texts[0] is the text, texts[1] the pair. Release with look_labels_release; on failure nothing is
 * held. */
bool look_labels_make(const struct look *look, const struct encoding *encoding,
                      const struct tokenizer *tokenizer, enum look_unit unit,
                      const struct text texts[2], struct look_labels *labels,
                      struct attn_error *error);
void look_labels_release(struct look_labels *labels);

/* chosen[count]: whether --from's WORD or WORD#N means the unit. Letters' case does not count. With
 * pieces, a word means all its pieces, and a name that is no word means a piece. A word that is not
 * there, or not N times, is refused with a list of the words, or of the pieces. */
bool look_labels_choose(const struct look *look, const struct look_labels *labels, const char *from,
                        bool *chosen, struct attn_error *error);

/* The same for a word that another option names: errors begin with `option`. */
bool look_labels_choose_for(const struct look *look, const struct look_labels *labels,
                            const char *option, const char *name, bool *chosen,
                            struct attn_error *error);

#endif
