/* The order of a text, its pair, and the special tokens that a model wants around them. */
#ifndef ATTN_TEXT_SEQUENCE_TEMPLATE_H
#define ATTN_TEXT_SEQUENCE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum template_part_kind { TEMPLATE_TEXT, TEMPLATE_PAIR, TEMPLATE_TOKEN };

struct template_part {
    enum template_part_kind kind;
    int32_t id;   /* of a TEMPLATE_TOKEN */
    int32_t type; /* of its tokens */
};

/* Start from zeros. */
struct sequence_template {
    struct template_part *parts;
    size_t count, capacity;
};

/* False when there is no memory. */
bool sequence_template_push(struct sequence_template *sequence, struct template_part part);
void sequence_template_release(struct sequence_template *sequence);

/* [CLS] text [SEP], and with a pair also pair [SEP], these of type 1. */
bool sequence_template_bert(struct sequence_template *sequence, bool pair, int32_t cls,
                            int32_t sep);

/* The text alone, and with a pair the pair of type 1 behind it. */
bool sequence_template_bare(struct sequence_template *sequence, bool pair);

#endif
