/* What `attn serve` answers: a text looked at, as its page shows it. */
#ifndef ATTN_CMD_SERVE_LOOK_H
#define ATTN_CMD_SERVE_LOOK_H

#include "serve/server.h"
#include "session.h"

/* The body is JSON: {"text": "…", "pair": "…" or null, "measure": "weights", "norm", "rollout" or
 * "grad"}, the last two optional; other keys are refused. `session`, a struct session, has its
 * tokenizer and text model open. The answer is draw_page_data's, of all heads, or of the means that
 * a page has room for. */
enum serve_outcome serve_look(void *session, const char *body, size_t size,
                              struct attn_buffer *answer, struct attn_error *error);

#endif
