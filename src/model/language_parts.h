/* What a language model is made of, for the files that make it. The door is language_model.h. */
#ifndef ATTN_MODEL_LANGUAGE_PARTS_H
#define ATTN_MODEL_LANGUAGE_PARTS_H

#include "model/language_memory.h"
#include "model/language_model.h"
#include "nn/activation.h"
#include "nn/layer_norm.h"

/* One layer, GPT-2's or BERT's. Weights point into the parameters' values. */
struct language_layer {
    struct self_attention attention;
    struct linear inner, outer;       /* the feed-forward block: outer(activation(inner(x))) */
    struct layer_norm attention_norm; /* GPT-2: before attention. BERT: behind the sum with it */
    struct layer_norm inner_norm;     /* the same of the feed-forward block */
    int64_t begin, count;             /* where the parameters of the layer lie */
};

/* What stands between the last layer and the logits hidden·wordsᵀ + bias. */
struct language_head {
    struct linear transform; /* BERT: before the norm, with an activation. GPT-2: none */
    struct layer_norm norm;
    const float *bias;    /* [vocabulary], BERT; GPT-2: NULL */
    int64_t begin, count; /* where its parameters lie, without the words */
};

/* How a parameter of a new model begins. */
enum language_start {
    START_ZERO,
    START_ONE,
    START_NORMAL,  /* deviation 0.02 */
    START_RESIDUAL /* 0.02/√(2·layers): each layer adds two such to the sum (A. Radford et al.,
                      "Language Models are Unsupervised Multitask Learners" (2019), 2.3) */
};

/* What a config says beside the settings. */
struct language_details {
    enum activation activation;
    float norm_epsilon;
    int64_t types; /* rows of the type table; BERT */
};

/* Beside the parameter of the same index. */
struct language_tensor {
    const float **where; /* the view that points to its values */
    enum language_start start;
};

struct language_model {
    struct language_model_settings settings; /* inner as it is, not 0 */
    const struct language_kind *kind;
    struct language_details details;

    struct parameters parameters;
    struct language_tensor *tensors; /* [parameters.item_count] */

    const float *words;               /* [vocabulary][width], the head's too */
    const float *positions;           /* [context][width] */
    const float *type_table;          /* [types][width], BERT */
    struct layer_norm embedding_norm; /* BERT */
    struct language_layer *layers;    /* [settings.layers] */
    struct language_head head;

    struct language_memory memory;
};

/* The list that a kind's `declare` makes. */
struct language_declaration {
    struct language_model *model;
    size_t capacity;
    bool failed; /* one was; the rest is passed over */
    struct attn_error *error;
};

/* Adds a parameter: the matrix [rows][columns], or with rows = 0 the vector [columns]. */
void language_declare(struct language_declaration *declaration, const float **where,
                      enum language_start start, int64_t rows, int64_t columns, const char *format,
                      ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 6, 7)))
#endif
    ;

/* The same for gain and shift of a norm: NAME.weight and NAME.bias. */
void language_declare_norm(struct language_declaration *declaration, struct layer_norm *norm,
                           const char *name);

/* …and for weight and bias of a linear layer whose `in`, `out` and `layout` are set. */
void language_declare_linear(struct language_declaration *declaration, struct linear *linear,
                             enum language_start start, const char *name);

/* Begins the names of BERT's masked-word head. */
#define BERT_HEAD "cls.predictions."

struct language_pass;

/* What GPT-2 and BERT do differently. */
struct language_kind {
    const char *prefix;              /* of its names, which some files leave out */
    struct language_details details; /* of a new model */

    /* Declares all parameters in order: embeddings, layers, head; sets shapes and ranges. */
    void (*declare)(struct language_declaration *declaration);
    /* Points views that are parts of others into the values; NULL: there is none. */
    void (*connect)(struct language_model *model);

    /* x[tokens][width] of the batch; backward from dx, which it may change. */
    void (*embed)(struct language_pass *pass, const int32_t *ids, float *x);
    bool (*embed_backward)(struct language_pass *pass, const int32_t *ids, float *dx,
                           struct attn_error *error);

    /* Layer n from memory's x(n) to x(n + 1); backward in place, from the gradient of the one to
     * that of the other. */
    bool (*layer)(struct language_pass *pass, int64_t n, struct attn_error *error);
    bool (*layer_backward)(struct language_pass *pass, int64_t n, float *dx,
                           struct attn_error *error);

    /* hidden[rows][width] from x[rows][width] of the last layer; backward from its gradient, which
     * is changed, to dx. */
    void (*head)(struct language_pass *pass, int64_t rows, const float *x, float *hidden);
    bool (*head_backward)(struct language_pass *pass, int64_t rows, const float *x, float *d_hidden,
                          float *dx, struct attn_error *error);

    bool (*write_config)(const struct language_model *model, const char *directory,
                         int32_t special_id, struct attn_error *error);
};

extern const struct language_kind language_kind_gpt2, language_kind_bert;

/* A model of these settings, its parameters listed but without memory yet. details NULL: those of a
 * new model. Errors name the setting that is out of range. */
bool language_model_make(struct language_model **model,
                         const struct language_model_settings *settings,
                         const struct language_details *details, struct attn_error *error);

/* Gives the parameters memory, zeros, and points all views into it. */
bool language_model_allocate(struct language_model *model, struct attn_error *error);

/* Fills parameter `item` as a new model has it. */
void language_start_parameter(struct language_model *model, size_t item, uint64_t seed);

/* Where the gradient of what `value` points to is: gradients lie as values do. */
static inline float *language_gradient(const struct language_model *model, const float *value)
{
    return value ? model->parameters.gradients + (value - model->parameters.values) : NULL;
}

#endif
