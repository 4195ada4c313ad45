/* One call of attn_backward behind a problem's attn_forward, and its result against the reference.
 */
#ifndef ATTN_TESTS_HARNESS_ATTENTION_GRADIENT_H
#define ATTN_TESTS_HARNESS_ATTENTION_GRADIENT_H

#include "harness/attention_problem.h"

/* In which type gradients of q, k and v are asked for; f64 tensors have f64 alone. */
enum gradient_types {
    GRADIENTS_F32,
    GRADIENTS_OF_INPUTS /* each in the type of its tensor */
};

/* What attn_backward is given beside the problem. o has problem->output_type, the gradients have
 * its output_layout and side; bias and sinks are asked for where the problem has them. */
struct gradient_call {
    attn_tensor d_o; /* guarded memory of the test */
    enum gradient_types types;
};

/* d_o in −1..1 of q's type (f32 as its values stand in no other), packed. */
void gradient_call_make(struct gradient_call *call, const struct attention_problem *problem,
                        uint64_t seed);

/* Row-major copies, in the shape of what each is the gradient of; NULL where there is none. */
struct gradient_result {
    double *q, *k, *v, *bias, *sinks;
    size_t of_q, of_k, of_v, of_bias, of_sinks; /* elements */
};

/* attn_forward, then attn_backward into tensors pre-filled with NaN; a status other than success is
 * a failed check. */
void gradient_solve(attn_context *context, const struct attention_problem *problem,
                    const struct gradient_call *call, struct gradient_result *result);

/* How many times the first-order error of one rounding everywhere (harness/reference_gradient.h) a
 * gradient may be off. */
#define GRADIENT_ERROR_FACTOR 8.0

/* The result against the definition in double precision. Beyond that factor a gradient may be off
 * by what its type rounds, and by what rounding weights to bf16 makes where params allow that and
 * all tensors are bf16. */
void gradient_check_result(const char *file, int line, const struct attention_problem *problem,
                           const struct gradient_call *call, const struct gradient_result *result);
#define CHECK_GRADIENTS(problem, call, result)                                                     \
    gradient_check_result(__FILE__, __LINE__, problem, call, result)

/* Two results have the same bits. */
void gradient_check_same(const char *file, int line, const struct gradient_result *actual,
                         const struct gradient_result *expected);
#define CHECK_SAME_GRADIENTS(actual, expected)                                                     \
    gradient_check_same(__FILE__, __LINE__, actual, expected)

/* The largest error seen by gradient_check_result so far, in units of GRADIENT_ERROR_FACTOR's, of
 * gradients in f32 without bf16 weights. */
double gradient_largest_error(void);

#endif
