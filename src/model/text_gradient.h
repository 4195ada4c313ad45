/* How what a model tells depends on its attention: the gradient of one number by what each layer's
 * heads blend. */
#ifndef ATTN_MODEL_TEXT_GRADIENT_H
#define ATTN_MODEL_TEXT_GRADIENT_H

#include "model/text_model.h"

/* The number y. */
enum gradient_target {
    GRADIENT_NEXT_WORD, /* ln p of the likeliest token behind the text; causal models */
    GRADIENT_EMBEDDING /* ½·‖e‖², e the mean of the last hidden states over all tokens; BERT */
};

struct gradient_subject {
    enum gradient_target target;
    int32_t id;   /* GRADIENT_NEXT_WORD: the token */
    double value; /* y */
};

/* Sees each layer, from the last to the first. record has the numbers that text_model_read shows,
 * and an output of zeros; d_o [1, heads, tokens, d], F32, is ∂y/∂O: O being what the heads have
 * blended, head h's gradient by its weights is ∂y/∂P = dO·Vᵀ (of the key head that it reads). Views
 * are valid during the call only; false ends the way back with `error`. */
struct gradient_observer {
    bool (*observe)(void *user, int64_t layer, const struct compute *compute,
                    const struct attention_record *record, const attn_tensor *d_o,
                    struct attn_error *error);
    void *user;
};

/* Reads the text and goes back through the layers: about three times the work of reading.
 * Memory: the sum that runs through the layers once a layer, [tokens][width], and one layer's
 * activations, which are computed again; where the machine has less, that is refused before
 * anything is computed. Other refusals are text_model_read's, and gradients that are not finite are
 * refused too. Results do not depend on the number of threads but for CBLAS's last bits. */
bool text_gradient_run(struct text_model *model, const struct compute *compute,
                       const struct encoding *encoding, const struct gradient_observer *observer,
                       struct gradient_subject *subject, struct attn_error *error);

#endif
