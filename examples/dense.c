/* Dense attention as in an encoder. A linear layer leaves q, k and v of all heads side by side in
 * each row, [batch][length][q|k|v][heads][dim]: three strided views read them where they stand. The
 * row statistics then give back the weights that were used. */
#include <attn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 2, LENGTH = 5, HEADS = 3, DIM = 4, ROW = 3 * HEADS * DIM };

static void check(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

static attn_tensor side_by_side(float *data)
{
    attn_tensor view = attn_tensor_packed(data, ATTN_F32, BATCH, HEADS, LENGTH, DIM);
    view.stride[0] = LENGTH * ROW;
    view.stride[1] = DIM;
    view.stride[2] = ROW;
    return view;
}

int main(void)
{
    static float qkv[BATCH * LENGTH * ROW], out[BATCH * LENGTH * HEADS * DIM];
    float statistics[BATCH * HEADS * LENGTH * 2], row_weights[LENGTH];
    for (int i = 0; i < BATCH * LENGTH * ROW; i++)
        qkv[i] = (float)(7 * i % 11 - 5) / 4;

    attn_context *context;
    check(NULL, attn_context_create(&context, NULL));
    attn_tensor q = side_by_side(qkv), k = side_by_side(qkv + HEADS * DIM);
    attn_tensor v = side_by_side(qkv + 2 * HEADS * DIM);
    /* Outputs take strides too: [batch][length][heads][dim] is what the next linear layer reads. */
    attn_tensor o = side_by_side(out);
    o.stride[0] = LENGTH * HEADS * DIM;
    o.stride[2] = HEADS * DIM;
    attn_tensor stats = attn_tensor_packed(statistics, ATTN_F32, BATCH, HEADS, LENGTH, 2);
    check(context, attn_forward(context, NULL, &q, &k, &v, &o, &stats));
    const float *row = out + (1 * LENGTH + 4) * HEADS * DIM + 2 * DIM;
    const float *m_l = statistics + ((1 * HEADS + 2) * LENGTH + 4) * 2;
    printf("output %.4f %.4f %.4f %.4f\n", row[0], row[1], row[2], row[3]);
    printf("log-sum-exp %.4f\n", m_l[0] + logf(m_l[1]));

    /* What query 4 of batch 1, head 2 looked at: any part of the weights, without the rest. */
    const int64_t begin[4] = {1, 2, 4, 0};
    attn_tensor weights = attn_tensor_packed(row_weights, ATTN_F32, 1, 1, 1, LENGTH);
    check(context, attn_weights(context, NULL, &q, &k, &stats, begin, &weights));
    printf("weights");
    for (int j = 0; j < LENGTH; j++)
        printf(" %.4f", row_weights[j]);
    printf("\n");
    attn_context_destroy(context);
    return 0;
}
