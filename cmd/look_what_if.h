/* attn look --ablate and --cut: what changes in what the model tells. */
#ifndef ATTN_CMD_LOOK_WHAT_IF_H
#define ATTN_CMD_LOOK_WHAT_IF_H

#include "base/buffer.h"
#include "look_labels.h"
#include "look_options.h"
#include "probe/what_if.h"
#include "session.h"

/* What --ablate and --cut ask for, its words found in the text. */
struct look_what_if {
    struct what_if what_if;   /* points into the rest, and to the options' heads */
    struct what_if_cut *cuts; /* [what_if.cut_count] */
    size_t *query_sizes;      /* [what_if.cut_count]: bytes of options->cuts[n] before the colon */
    bool *tokens;             /* what the cuts point to */
};

/* Whether the command line asks for a change. */
bool look_what_if_is_asked(const struct look_options *options);

/* Finds the words of --cut among the labels of the text's words. A cut is made in the heads and
 * layers that --head and --layer name. Release with look_what_if_release; on failure nothing is
 * held. */
bool look_what_if_make(const struct look_options *options, const struct look *look,
                       const struct look_labels *labels, const struct encoding *encoding,
                       struct look_what_if *made, struct attn_error *error);
void look_what_if_release(struct look_what_if *made);

/* Appends the change in words, as they follow "if": "L4H7 were not there, and …". */
void look_what_if_tell(const struct look_options *options, const struct look_what_if *what_if,
                       struct attn_buffer *out);

/* Runs the model with and without the change, and prints what changed: lines, or JSON. The
 * session's text model is open. texts[0] is the text, texts[1] the pair. */
bool look_what_if_print(const struct look_options *options, struct session *session,
                        const struct look *look, const struct look_labels *labels,
                        const struct text texts[2], const struct encoding *encoding,
                        const struct look_what_if *what_if, struct attn_error *error);

#endif
