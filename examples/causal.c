/* Causal attention of a decoder: no token sees a later one. Long prompts come in chunks; the
 * queries of a later chunk are aligned with the end of the keys, and get the same bits as in one
 * go. With a window each token sees itself and some before it, and the rest is not computed. */
#include <attn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 2, LENGTH = 6, CHUNK = 4, DIM = 4, SIZE = HEADS * LENGTH * DIM };
static float query[SIZE], key[SIZE], value[SIZE];

static void check(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

/* Rows begin..end−1 of [1, HEADS, LENGTH, DIM]. */
static attn_tensor rows(float *data, int begin, int end)
{
    attn_tensor view = attn_tensor_packed(data, ATTN_F32, 1, HEADS, LENGTH, DIM);
    view.data = data + begin * DIM, view.shape[2] = end - begin;
    return view;
}

/* Queries begin..end−1 look at keys 0..end−1. */
static void attend(attn_context *context, const attn_params *params, int begin, int end, float *out)
{
    attn_tensor q = rows(query, begin, end), k = rows(key, 0, end), v = rows(value, 0, end);
    attn_tensor o = rows(out, begin, end);
    check(context, attn_forward(context, params, &q, &k, &v, &o, NULL));
}

int main(void)
{
    float whole[SIZE], chunks[SIZE], window[SIZE];
    for (int i = 0; i < SIZE; i++) {
        query[i] = (float)(7 * i % 11 - 5) / 4;
        key[i] = (float)((5 * i + 3) % 13 - 6) / 4;
        value[i] = (float)((3 * i + 1) % 17 - 8) / 4;
    }
    attn_context *context;
    attn_params params;
    check(NULL, attn_context_create(&context, NULL));
    attn_params_init(&params);
    params.causal = 1;
    params.alignment = ATTN_ALIGN_BOTTOM_RIGHT; /* the last query stands at the last key */
    attend(context, &params, 0, LENGTH, whole);
    attend(context, &params, 0, CHUNK, chunks);
    attend(context, &params, CHUNK, LENGTH, chunks);
    printf("last row %.4f %.4f\n", whole[SIZE - 2], whole[SIZE - 1]);
    printf("chunks give %s bits\n", memcmp(whole, chunks, sizeof whole) ? "other" : "the same");
    params.window_left = 2; /* three keys with the token's own */
    attend(context, &params, 0, LENGTH, window);
    printf("last row with a window %.4f %.4f\n", window[SIZE - 2], window[SIZE - 1]);
    attn_context_destroy(context);
    return 0;
}
