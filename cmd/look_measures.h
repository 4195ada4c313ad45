/* Measures of a look by name: for `attn look` and `attn serve`. */
#ifndef ATTN_CMD_LOOK_MEASURES_H
#define ATTN_CMD_LOOK_MEASURES_H

#include "probe/look.h"

/* "weights", "norm", "rollout" or "grad"; others are refused with that list. */
bool look_measure_find(const char *name, enum look_measure *measure, struct attn_error *error);
const char *look_measure_name(enum look_measure measure);

#endif
