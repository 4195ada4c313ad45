/* What a forward pass looked at, told on its way: for each row the keys with the largest weights
 * and the entropy, for each key what it receives. At any length, and the output keeps its bits. */
#include <attn.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 300, DIM = 4, SIZE = TOKENS * DIM, TOP = 3 };

static void check(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

int main(void)
{
    static float query[SIZE], key[SIZE], value[SIZE], out[SIZE];
    static float weight[TOKENS * TOP], entropy[TOKENS], received[TOKENS];
    static int32_t place[TOKENS * TOP];
    for (int i = 0; i < SIZE; i++) {
        query[i] = (float)(7 * i % 11 - 5) / 4;
        key[i] = (float)((5 * i + 3) % 13 - 6) / 4;
        value[i] = (float)((3 * i + 1) % 17 - 8) / 4;
    }
    attn_tensor q = attn_tensor_packed(query, ATTN_F32, 1, 1, TOKENS, DIM);
    attn_tensor k = attn_tensor_packed(key, ATTN_F32, 1, 1, TOKENS, DIM);
    attn_tensor v = attn_tensor_packed(value, ATTN_F32, 1, 1, TOKENS, DIM);
    attn_tensor o = attn_tensor_packed(out, ATTN_F32, 1, 1, TOKENS, DIM);

    attn_tensor weights = attn_tensor_packed(weight, ATTN_F32, 1, 1, TOKENS, TOP);
    attn_tensor places = attn_tensor_packed(place, ATTN_I32, 1, 1, TOKENS, TOP);
    attn_tensor entropies = attn_tensor_packed(entropy, ATTN_F32, 1, 1, TOKENS, 1);
    attn_tensor sums = attn_tensor_packed(received, ATTN_F32, 1, 1, TOKENS, 1);
    attn_inspection wanted;
    attn_inspection_init(&wanted);
    wanted.top_weights = &weights;
    wanted.top_keys = &places;
    wanted.entropy = &entropies;
    wanted.key_sums = &sums;

    attn_context *context;
    check(NULL, attn_context_create(&context, NULL));
    attn_params params;
    attn_params_init(&params);
    params.causal = 1;
    check(context, attn_forward_inspect(context, &params, &q, &k, &v, &o, NULL, &wanted));

    for (int row = 1; row < TOKENS; row += 149) {
        printf("row %d:", row);
        for (int n = row * TOP; n < (row + 1) * TOP && place[n] >= 0; n++)
            printf(" key %d %.4f", (int)place[n], weight[n]);
        printf(", entropy %.4f\n", entropy[row]);
    }
    printf("key 0 receives %.4f\n", received[0]);
    attn_context_destroy(context);
    return 0;
}
