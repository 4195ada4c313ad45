/* Reads the handed cases: tensors and options as tests/data/cases/attention.json and backward.json
 * spell them. */
#ifndef ATTN_TESTS_ATTENTION_CASE_INPUT_H
#define ATTN_TESTS_ATTENTION_CASE_INPUT_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/attention_problem.h"

enum { CASE_MAX_HEADS = 16, CASE_MAX_BATCH = 8, CASE_MAX_SEEDS = 8 };

/* A problem, and the arrays that its params point to. */
struct case_input {
    struct attention_problem problem;
    int64_t key_lengths[CASE_MAX_BATCH];
    float slopes[CASE_MAX_HEADS], sinks[CASE_MAX_HEADS];
    attn_tensor d_o; /* without data where the case has none */
    /* Seeds for params.dropout_seed; one of 0 where the case has none. */
    uint64_t seeds[CASE_MAX_SEEDS];
    size_t seed_count;
};

/* Fills `input`; what the reader does not know is a failed check and gives false. */
bool case_input_read(const json_t *json, struct case_input *input);

/* A tensor; axes that its shape does not name are 1. Guarded memory of the test. */
attn_tensor case_tensor(const json_t *json, attn_type type);

/* A number: "nan", "inf" and "-inf" are strings. */
double case_number(const json_t *json);

/* The elements of an array of numbers, and how many; guarded memory of the test. */
double *case_numbers(const json_t *array, size_t *count);

#endif
