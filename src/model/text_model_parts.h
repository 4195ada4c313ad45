/* What the files of text_model.h share. */
#ifndef ATTN_MODEL_TEXT_MODEL_PARTS_H
#define ATTN_MODEL_TEXT_MODEL_PARTS_H

#include "model/bert.h"
#include "model/causal_model.h"
#include "model/text_model.h"

struct text_model {
    struct text_model_settings settings;
    struct bert *bert;           /* one of the two */
    struct causal_model *causal; /* is there */
};

#endif
