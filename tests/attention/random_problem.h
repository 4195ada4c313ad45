/* Random problems with options of every kind at once. */
#ifndef ATTN_TESTS_ATTENTION_RANDOM_PROBLEM_H
#define ATTN_TESTS_ATTENTION_RANDOM_PROBLEM_H

#include "harness/attention_problem.h"

enum { RANDOM_MAX_HEADS = 9, RANDOM_MAX_BATCH = 3, RANDOM_MAX_SEQUENCES = 6 };

/* What the pointers of a problem's params point to. */
struct random_arrays {
    int64_t key_lengths[RANDOM_MAX_SEQUENCES], prefix_lengths[RANDOM_MAX_SEQUENCES];
    float slopes[RANDOM_MAX_HEADS], sinks[RANDOM_MAX_HEADS];
    int64_t reach; /* of the callbacks */
};

/* Small sizes and those around tile edges, masks, layouts and types; no pages. `arrays` must
 * outlive the problem. */
void random_problem(struct random_source *source, struct attention_problem *problem,
                    struct random_arrays *arrays);

/* True with a probability of 1/n. */
bool random_one_in(struct random_source *source, int64_t n);

#endif
