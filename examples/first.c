/* Two queries look at three keys. */
#include <attn.h>
#include <stdio.h>

int main(void)
{
    float query[4] = {1, 0, 0, 2}, key[6] = {1, 0, 0, 1, 1, 1}, value[3] = {1, 2, 3}, out[2];
    attn_tensor q = attn_tensor_packed(query, ATTN_F32, 1, 1, 2, 2); /* batch, heads, length, dim */
    attn_tensor k = attn_tensor_packed(key, ATTN_F32, 1, 1, 3, 2);
    attn_tensor v = attn_tensor_packed(value, ATTN_F32, 1, 1, 3, 1);
    attn_tensor o = attn_tensor_packed(out, ATTN_F32, 1, 1, 2, 1);
    attn_context *context;
    int failed = attn_context_create(&context, NULL) != ATTN_SUCCESS ||
                 attn_forward(context, NULL, &q, &k, &v, &o, NULL) != ATTN_SUCCESS;
    if (failed)
        fprintf(stderr, "%s\n", attn_message(context));
    else
        printf("attn %s: %.4f %.4f\n", attn_version(), out[0], out[1]);
    attn_context_destroy(context);
    return failed;
}
