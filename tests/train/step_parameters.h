/* Parameters without a model, for tests of what a step does to them. */
#ifndef ATTN_TESTS_STEP_PARAMETERS_H
#define ATTN_TESTS_STEP_PARAMETERS_H

#include "model/parameters.h"

/* Adds a tensor; columns 0 is a vector of `rows` numbers. */
void add_tensor(struct parameters *parameters, const char *name, int64_t rows, int64_t columns);

/* Memory for values and gradients. */
void allocate_parameters(struct parameters *parameters);

/* Numbers that look like any: values around 0.5, gradients around 0, of any size up to 1. */
void fill_parameters(struct parameters *parameters);

#endif
