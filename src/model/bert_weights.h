/* The tensors of a BERT checkpoint as the layers that use them. */
#ifndef ATTN_MODEL_BERT_WEIGHTS_H
#define ATTN_MODEL_BERT_WEIGHTS_H

#include "format/checkpoint.h"
#include "model/bert_config.h"
#include "nn/layer_norm.h"
#include "nn/self_attention.h"

struct bert_layer {
    struct self_attention attention;  /* attention.self.{query,key,value}, attention.output.dense */
    struct layer_norm attention_norm; /* attention.output.LayerNorm */
    struct linear intermediate;       /* intermediate.dense: [inner][hidden] */
    struct linear output;             /* output.dense: [hidden][inner] */
    struct layer_norm output_norm;    /* output.LayerNorm */
};

struct bert_weights {
    const float *words;     /* [vocabulary][hidden] */
    const float *positions; /* [positions][hidden] */
    const float *types;     /* [types][hidden] */
    struct layer_norm embedding_norm;
    struct bert_layer *layers;   /* [config.layers] */
    struct converted *converted; /* copies of what is not stored as float32 */
};

/* Finds every tensor that a model of this shape has. Names may begin with "bert."; layer norms may
 * say gamma and beta for weight and bias; all other tensors are left alone. What lies in the file
 * as aligned float32 is not touched, only pointed to: the weights live as long as the checkpoint.
 * Errors: "PATH: the file has no tensor NAME", "PATH: NAME has shape [12, 4], expected [4, 12]", a
 * type that does not convert. On failure nothing is held. */
bool bert_weights_bind(struct bert_weights *weights, const struct bert_config *config,
                       const struct checkpoint *checkpoint, struct attn_error *error);
void bert_weights_release(struct bert_weights *weights);

#endif
