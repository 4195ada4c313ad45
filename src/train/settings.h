/* What one training is, beside the sizes of its model: all that a resume must know. */
#ifndef ATTN_TRAIN_SETTINGS_H
#define ATTN_TRAIN_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "train/optimizer.h"
#include "train/schedule.h"

enum train_objective {
    TRAIN_GPT, /* tell the next token */
    TRAIN_MLM  /* tell masked tokens (J. Devlin et al., 2019, 3.1) */
};

struct train_settings {
    enum train_objective objective;
    int64_t context;    /* tokens of a sequence; with TRAIN_MLM [CLS] and [SEP] are two of them */
    int64_t batch;      /* sequences of a step, over all processes */
    int64_t accumulate; /* parts that a process computes its share of a batch in, for less memory */
    struct schedule schedule; /* its total is the steps of the training */
    struct optimizer_settings optimizer;
    double clip;            /* of the gradient's norm; 0: none */
    double dropout;         /* 0 ≤ dropout < 1 */
    double held_out;        /* share of the text, at its end, that nothing is learned from; < 1 */
    int64_t evaluate_every; /* steps between two losses of the held-out text */
    int64_t save_every;     /* steps between two checkpoints */
    int64_t seed;           /* ≥ 0 */
};

/* Stands for a number that train_settings_complete derives from others. */
enum { TRAIN_AUTOMATIC = -1 };

/* A small GPT in minutes; warm-up, evaluate_every and save_every are TRAIN_AUTOMATIC. */
void train_settings_init(struct train_settings *settings);

/* Derives what is still TRAIN_AUTOMATIC: a warm-up of a tenth of the steps, at most 200; evaluation
 * and checkpoint after each tenth. */
void train_settings_complete(struct train_settings *settings);

/* Sets a field by the name that options and checkpoints have for it ("lr", "warmup") from the text
 * of an option. A text that is no such number, or out of the field's range, is refused as
 * "--lr is 'x', but must be …". The name is one of those in settings.c. */
bool train_settings_set(struct train_settings *settings, const char *name, const char *text,
                        struct attn_error *error);

/* Refuses fields that do not fit each other, in `processes` processes. Each is in its range. */
bool train_settings_check(const struct train_settings *settings, int processes,
                          struct attn_error *error);

/* As a JSON object, new; NULL where there is no memory. Numbers are read back with the same bits.
 */
json_t *train_settings_to_json(const struct train_settings *settings);

/* Back. A field that is missing or out of its range is refused; `path` names the file. */
bool train_settings_from_json(struct train_settings *settings, const json_t *object,
                              const char *path, struct attn_error *error);

#endif
