/* What the files of a session share. */
#ifndef ATTN_MODEL_CAUSAL_SESSION_PARTS_H
#define ATTN_MODEL_CAUSAL_SESSION_PARTS_H

#include "base/memory.h"
#include "model/causal_pass.h"

/* Places of the chunk that is read are filled anew for each. */
struct causal_session {
    struct causal_session_settings settings; /* chunk is known */
    struct key_value_cache cache;
    struct attn_workspace memory; /* the floats of `pass` */
    struct causal_pass pass;

    int64_t *before;         /* [sequences]: lengths before a call */
    int64_t *slots, *starts; /* [sequences], [sequences + 1]: of the chunk */
    float *position;         /* [width]: the row of one position; GPT-2 */
};

#endif
