#include "model/text_gradient.h"

#include <stdlib.h>

#include "model/bert_gradient.h"
#include "model/causal_gradient.h"
#include "model/text_model_parts.h"

bool text_gradient_run(struct text_model *model, const struct compute *compute,
                       const struct encoding *encoding, const struct gradient_observer *observer,
                       struct gradient_subject *subject, struct attn_error *error)
{
    const size_t tokens = encoding->token_count;
    const int64_t starts[] = {0, (int64_t)tokens};
    /* Room for a token at least, so that a text without one comes to the model, which refuses it.
     */
    int32_t *ids = calloc(2 * tokens + 1, sizeof *ids);
    if (!ids)
        return attn_error_memory(error);
    int32_t *types = ids + tokens;
    for (size_t t = 0; t < tokens; t++) {
        ids[t] = encoding->tokens[t].id;
        types[t] = encoding->tokens[t].type;
    }
    const struct bert_input input = {{1, starts}, ids, types};
    const bool done =
        model->bert
            ? bert_gradient_run(model->bert, compute, &input, observer, subject, error)
            : causal_gradient_run(model->causal, compute, starts[1], ids, observer, subject, error);
    free(ids);
    return done;
}
