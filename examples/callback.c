/* A pattern of one's own as two callbacks. Dilated attention: a query sees itself and every third
 * key before it, up to a reach, and far keys count less. change_scores says so of single scores;
 * key_range says which keys a group of queries needs at all, so that the others cost nothing. */
#include <attn.h>
#include <math.h>
#include <stdio.h>
enum { LENGTH = 300, DIM = 4, SIZE = LENGTH * DIM };

/* Every step-th key back to `reach`; each key of distance takes `decay` off the score. */
struct pattern {
    int64_t step, reach;
    float decay;
};

static void dilate(void *user, const attn_score_tile *tile)
{
    const struct pattern *pattern = user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++) {
            float *score = &tile->scores[i * tile->query_stride + j * tile->key_stride];
            int64_t back = tile->query + i - (tile->key + j);
            int seen = back >= 0 && back <= pattern->reach && back % pattern->step == 0;
            *score = seen ? *score - pattern->decay * (float)back : -INFINITY;
        }
}

static void within_reach(void *user, int64_t sequence, int64_t head, int64_t query, int64_t queries,
                         int64_t *begin, int64_t *end)
{
    const struct pattern *pattern = user;
    (void)sequence, (void)head;
    *begin = query > pattern->reach ? query - pattern->reach : 0;
    *end = query + queries < *end ? query + queries : *end;
}

int main(void)
{
    static float query[SIZE], key[SIZE], value[SIZE], out[SIZE];
    for (int i = 0; i < SIZE; i++) {
        query[i] = (float)(7 * i % 11 - 5) / 4;
        key[i] = (float)((5 * i + 3) % 13 - 6) / 4;
        value[i] = (float)((3 * i + 1) % 17 - 8) / 4;
    }
    attn_tensor q = attn_tensor_packed(query, ATTN_F32, 1, 1, LENGTH, DIM), k = q, v = q, o = q;
    k.data = key, v.data = value, o.data = out;
    struct pattern pattern = {3, 30, 0.125F};
    attn_params params;
    attn_params_init(&params);
    params.change_scores = dilate, params.key_range = within_reach;
    params.callback_user = &pattern;
    attn_context *context;
    int failed = attn_context_create(&context, NULL) != ATTN_SUCCESS ||
                 attn_forward(context, &params, &q, &k, &v, &o, NULL) != ATTN_SUCCESS;
    if (failed)
        fprintf(stderr, "%s\n", attn_message(context));
    for (int row = 0; row < LENGTH && !failed; row += 149)
        printf("row %d: %.4f %.4f\n", row, out[row * DIM], out[row * DIM + 1]);
    attn_context_destroy(context);
    return failed;
}
