/* Sequences of different lengths, packed one behind the other without padding: a batch of texts as
 * [1, heads, all their tokens, dim]. Each sees itself alone; positions (causal, windows, ALiBi)
 * count from its own begin. */
#include <attn.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 2, SEQUENCES = 4, TOKENS = 9, DIM = 4, SIZE = HEADS * TOKENS * DIM };

static void check(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

int main(void)
{
    /* Lengths 3, 1, 0 and 5. Where keys and queries differ, their starts do. */
    const int64_t starts[SEQUENCES + 1] = {0, 3, 4, 4, 9};
    float query[SIZE], key[SIZE], value[SIZE], out[SIZE], slopes[HEADS];
    for (int i = 0; i < SIZE; i++) {
        query[i] = (float)(7 * i % 11 - 5) / 4;
        key[i] = (float)((5 * i + 3) % 13 - 6) / 4;
        value[i] = (float)((3 * i + 1) % 17 - 8) / 4;
    }
    attn_tensor q = attn_tensor_packed(query, ATTN_F32, 1, HEADS, TOKENS, DIM);
    attn_tensor k = attn_tensor_packed(key, ATTN_F32, 1, HEADS, TOKENS, DIM);
    attn_tensor v = attn_tensor_packed(value, ATTN_F32, 1, HEADS, TOKENS, DIM);
    attn_tensor o = attn_tensor_packed(out, ATTN_F32, 1, HEADS, TOKENS, DIM);

    attn_context *context;
    check(NULL, attn_context_create(&context, NULL));
    attn_params params;
    attn_params_init(&params);
    params.sequences = SEQUENCES;
    params.query_starts = starts;
    params.key_starts = starts;
    params.causal = 1;
    attn_alibi_slopes(HEADS, slopes);
    params.alibi_slopes = slopes;
    check(context, attn_forward(context, &params, &q, &k, &v, &o, NULL));

    for (int s = 0; s < SEQUENCES; s++) {
        printf("sequence %d", s);
        if (starts[s] == starts[s + 1])
            printf(" is empty");
        else /* its middle token in head 1 */
            for (int c = 0; c < DIM; c++)
                printf(" %.4f", out[(TOKENS + (starts[s] + starts[s + 1]) / 2) * DIM + c]);
        printf("\n");
    }
    attn_context_destroy(context);
    return 0;
}
