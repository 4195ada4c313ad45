/* Plain C, in the vectors of 16 bytes that compilers use by themselves on every 64-bit target: a
 * multiplication and an addition, which are not fused. */
#include "measure/machine_loops.h"

typedef float float_vector __attribute__((vector_size(16)));
typedef uint64_t word_vector __attribute__((vector_size(16)));

#define LOOPS                 machine_loops_scalar
#define FLOATS                float_vector
#define WORDS                 word_vector
#define ACCUMULATORS          12
#define BROADCAST(x)          ((float_vector){(x), (x), (x), (x)})
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define LOAD(p)               (*(const word_vector *)(const void *)(p))
#define ADD(a, b)             ((a) + (b))

#include "measure/machine_loops_body.inc"
