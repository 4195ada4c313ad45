/* What a change to a model does, for people and for programs. */
#ifndef ATTN_CMD_LOOK_WHAT_IF_REPORT_H
#define ATTN_CMD_LOOK_WHAT_IF_REPORT_H

#include "base/buffer.h"
#include "look_what_if.h"

/* 1 − cos of a unit's last hidden state before and after. */
struct what_if_move {
    size_t unit;
    double distance;
};

struct what_if_report {
    const struct look_options *options;
    const struct session *session;
    const struct look *look;
    const struct look_labels *labels;
    const struct text *texts; /* [2] */
    const struct encoding *encoding;
    const struct look_what_if *what_if;
    struct what_if_effects effects;
    struct what_if_move *moves; /* [move_count], farthest first */
    size_t move_count;
    bool lacks_head; /* the text has a [MASK], and the model nothing to fill it with */
};

/* Appended to `out`, which remembers where memory is missing. */
void what_if_report_lines(const struct what_if_report *report, struct attn_buffer *out);
void what_if_report_json(const struct what_if_report *report, struct attn_buffer *out);

/* A word of the vocabulary as a text would have it; a special token by its name, an id that only
 * the model has by its number. It may be part of a character. */
void what_if_add_word(const struct tokenizer *tokenizer, int32_t id, struct attn_buffer *out);

/* "L4H7" or "L4". */
void what_if_add_head(const struct look_head *head, struct attn_buffer *out);

#endif
