/* Text is generated token by token: each new token's key and value join a cache, and its query
 * looks at all of them. The cache is allocated once for the longest text; a view names the part in
 * use. Four query heads share two key heads. In the end one causal call gives the same rows. */
#include <attn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 4, KEY_HEADS = 2, CAPACITY = 64, TOKENS = 40, DIM = 8 };

static void check(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

/* Stands in for the model: what a layer makes of a token for a head. */
static void project(float *row, int kind, int token, int head)
{
    for (int c = 0; c < DIM; c++)
        row[c] = (float)((5 * kind + 7 * token + 3 * head + 11 * c + token * c) % 13 - 6) / 4;
}

int main(void)
{
    static float key_cache[KEY_HEADS][CAPACITY][DIM], value_cache[KEY_HEADS][CAPACITY][DIM];
    static float queries[HEADS][TOKENS][DIM], decoded[HEADS][TOKENS][DIM],
        whole[HEADS][TOKENS][DIM];
    attn_tensor k = attn_tensor_packed(key_cache, ATTN_F32, 1, KEY_HEADS, CAPACITY, DIM), v = k;
    attn_tensor q = attn_tensor_packed(queries, ATTN_F32, 1, HEADS, TOKENS, DIM), o = q;
    v.data = value_cache;
    attn_context *context;
    check(NULL, attn_context_create(&context, NULL));
    for (int t = 0; t < TOKENS; t++) {
        for (int h = 0; h < HEADS; h++)
            project(queries[h][t], 0, t, h);
        for (int h = 0; h < KEY_HEADS; h++)
            project(key_cache[h][t], 1, t, h), project(value_cache[h][t], 2, t, h);
        k.shape[2] = v.shape[2] = t + 1; /* the strides stay those of the whole cache */
        q.shape[2] = o.shape[2] = 1;
        q.data = queries[0][t], o.data = decoded[0][t];
        check(context, attn_decode(context, NULL, &q, &k, &v, &o, NULL));
    }
    attn_params params;
    attn_params_init(&params);
    params.causal = 1;
    q.shape[2] = o.shape[2] = TOKENS;
    q.data = queries, o.data = whole;
    check(context, attn_forward(context, &params, &q, &k, &v, &o, NULL));
    int agree = 1;
    for (int i = 0; i < HEADS * TOKENS * DIM; i++)
        agree &= fabsf((&whole[0][0][0])[i] - (&decoded[0][0][0])[i]) <= 1e-5F;
    const float *last = decoded[HEADS - 1][TOKENS - 1];
    printf("last token %.4f %.4f\n", last[0], last[1]);
    printf("decode and forward %s\n", agree ? "agree" : "differ");
    attn_context_destroy(context);
    return 0;
}
