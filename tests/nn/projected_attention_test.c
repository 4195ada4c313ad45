/* Attention of q | k | v side by side against libattn on tensors of their own. */
#include "nn/projected_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"

enum { TOKENS = 53, HEADS = 4, D = 6 };

/* The same numbers in two layouts: rows of all heads side by side, and heads apart. */
struct apart {
    float q[HEADS * TOKENS * D], k[HEADS * TOKENS * D], v[HEADS * TOKENS * D],
        o[HEADS * TOKENS * D];
    float stats[HEADS * TOKENS * 2];
};

/* Moves `heads` heads from column `first` of rows[TOKENS][row] on to packed[heads][TOKENS][D]. */
static void pack(const float *rows, int64_t row, int64_t first, int64_t heads, float *packed)
{
    for (int64_t h = 0; h < heads; h++)
        for (int64_t t = 0; t < TOKENS; t++)
            memcpy(packed + (h * TOKENS + t) * D, rows + t * row + first + h * D,
                   D * sizeof *packed);
}

static void pack_projected(const float *projected, int64_t key_heads, struct apart *apart)
{
    const int64_t row = (HEADS + 2 * key_heads) * D;
    pack(projected, row, 0, HEADS, apart->q);
    pack(projected, row, HEADS * D, key_heads, apart->k);
    pack(projected, row, (HEADS + key_heads) * D, key_heads, apart->v);
}

static attn_tensor heads_of(float *data, int64_t heads, int64_t width)
{
    return attn_tensor_packed(data, ATTN_F32, 1, heads, TOKENS, width);
}

static void expect(const struct compute *compute, int64_t key_heads, bool causal,
                   struct apart *numbers, float *d_o, struct apart *gradients)
{
    const attn_tensor q = heads_of(numbers->q, HEADS, D), k = heads_of(numbers->k, key_heads, D),
                      v = heads_of(numbers->v, key_heads, D), o = heads_of(numbers->o, HEADS, D),
                      stats = heads_of(numbers->stats, HEADS, 2), d = heads_of(d_o, HEADS, D);
    const attn_tensor dq = heads_of(gradients->q, HEADS, D),
                      dk = heads_of(gradients->k, key_heads, D),
                      dv = heads_of(gradients->v, key_heads, D);
    attn_params params;
    attn_params_init(&params);
    params.causal = causal;
    attn_gradients wanted;
    attn_gradients_init(&wanted);
    wanted.q = &dq;
    wanted.k = &dk;
    wanted.v = &dv;
    assert_int_equal(attn_forward(compute->attention, &params, &q, &k, &v, &o, &stats),
                     ATTN_SUCCESS);
    assert_int_equal(
        attn_backward(compute->attention, &params, &q, &k, &v, &o, &stats, &d, &wanted),
        ATTN_SUCCESS);
}

static void check(const struct compute *compute, int64_t key_heads, bool causal)
{
    static struct apart numbers, gradients, actual;
    static float d_o[HEADS * TOKENS * D], blended[HEADS * TOKENS * D];
    struct projected_attention attention = {
        .compute = compute,
        .tokens = TOKENS,
        .heads = HEADS,
        .key_heads = key_heads,
        .d = D,
        .sight = causal ? SELF_ATTENTION_CAUSAL : SELF_ATTENTION_ALL,
    };
    struct attn_scratch counted = {0}, memory = {0};
    struct attn_error error;
    projected_attention_lay_out(&attention, &counted);
    memory.base = aligned_alloc(64, (size_t)counted.used);
    assert_non_null(memory.base);
    projected_attention_lay_out(&attention, &memory);
    assert_int_equal(memory.used, counted.used);
    for (int64_t n = 0; n < TOKENS * projected_attention_width(&attention); n++)
        attention.projected[n] = sinf((float)n * 1.3f);
    for (int64_t n = 0; n < TOKENS * HEADS * D; n++)
        attention.d_blended[n] = sinf((float)n * 0.7f + 1.0f);

    assert_true(projected_attention_forward(&attention, &error));
    assert_true(projected_attention_backward(&attention, &error));
    pack_projected(attention.projected, key_heads, &numbers);
    pack(attention.d_blended, HEADS * D, 0, HEADS, d_o);
    expect(compute, key_heads, causal, &numbers, d_o, &gradients);
    pack(attention.blended, HEADS * D, 0, HEADS, blended);
    pack_projected(attention.d_projected, key_heads, &actual);
    const size_t keys = (size_t)key_heads * TOKENS * D;
    assert_memory_equal(blended, numbers.o, sizeof blended);
    assert_memory_equal(attention.stats, numbers.stats, sizeof numbers.stats);
    assert_near(actual.q, gradients.q, HEADS * TOKENS * D, 1e-6);
    assert_near(actual.k, gradients.k, keys, 1e-6);
    assert_near(actual.v, gradients.v, keys, 1e-6);
    free(memory.base);
}

static void every_shape(const struct compute *compute)
{
    for (int64_t key_heads = 1; key_heads <= HEADS; key_heads *= 2)
        for (int causal = 0; causal < 2; causal++)
            check(compute, key_heads, causal);
}

static void test_as_tensors_of_their_own(void **state)
{
    (void)state;
    each_isa(2, every_shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_tensors_of_their_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
