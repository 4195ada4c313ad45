/* Every word at once against one word at a time. A text that is there, to be learned from or as a
 * prompt, goes through causal attention in one call: each key and value is read into registers and
 * caches once for many queries. A text that is being written cannot: each token's query has to read
 * all keys and values again, from a cache that grows with it.
 *
 *     word_at_once [LONGEST]
 *
 * prints the time a token takes either way, on one thread, in the attention of a layer of GPT-2 (12
 * heads of 64), for texts of 64 tokens, 128 and so on up to LONGEST, 2048 where it is not given. */
#include <attn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HEADS = 12, DIM = 64, SHORTEST = 64, REPETITIONS = 3 };

static void check(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* [1, HEADS, length, DIM] each; in `at_once` and `one_by_one` the two results. */
struct text {
    int64_t length;
    float *q, *k, *v, *at_once, *one_by_one;
};

/* Numbers of variance 1/3 from D. Knuth's linear congruential generator. */
static struct text make_text(int64_t length)
{
    const size_t size = (size_t)(HEADS * length * DIM);
    float *data = malloc(5 * size * sizeof *data);
    uint64_t state = 1;
    if (!data) {
        fprintf(stderr, "there is no memory for %lld tokens\n", (long long)length);
        exit(1);
    }
    for (size_t n = 0; n < 5 * size; n++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        data[n] = (float)(state >> 40) / (1 << 23) - 1;
    }
    return (struct text){length,          data,           data + size, data + 2 * size,
                         data + 3 * size, data + 4 * size};
}

/* Tokens first..first+count−1 of all heads. */
static attn_tensor tokens(const struct text *text, float *data, int64_t first, int64_t count)
{
    attn_tensor view = attn_tensor_packed(data, ATTN_F32, 1, HEADS, text->length, DIM);
    view.data = data + first * DIM;
    view.shape[2] = count;
    return view;
}

static void all_at_once(attn_context *context, const struct text *text)
{
    attn_params params;
    attn_params_init(&params);
    params.causal = 1;
    attn_tensor q = tokens(text, text->q, 0, text->length), k = q, v = q, o = q;
    k.data = text->k, v.data = text->v, o.data = text->at_once;
    check(context, attn_forward(context, &params, &q, &k, &v, &o, NULL));
}

static void one_at_a_time(attn_context *context, const struct text *text)
{
    for (int64_t t = 0; t < text->length; t++) {
        attn_tensor q = tokens(text, text->q, t, 1), o = tokens(text, text->one_by_one, t, 1);
        attn_tensor k = tokens(text, text->k, 0, t + 1), v = tokens(text, text->v, 0, t + 1);
        check(context, attn_decode(context, NULL, &q, &k, &v, &o, NULL));
    }
}

/* Microseconds a token, the shortest of some repetitions. */
static double time_of(attn_context *context, const struct text *text,
                      void (*attend)(attn_context *context, const struct text *text))
{
    double shortest = INFINITY;
    for (int n = 0; n < REPETITIONS; n++) {
        const double begin = now();
        attend(context, text);
        shortest = fmin(shortest, now() - begin);
    }
    return 1e6 * shortest / (double)text->length;
}

static double difference(const struct text *text)
{
    double largest = 0;
    for (int64_t n = 0; n < HEADS * text->length * DIM; n++)
        largest = fmax(largest, fabs((double)text->at_once[n] - (double)text->one_by_one[n]));
    return largest;
}

int main(int count, char **arguments)
{
    const int64_t longest = count > 1 ? strtoll(arguments[1], NULL, 10) : 2048;
    if (count > 2 || longest < SHORTEST || longest > 1 << 20) {
        fprintf(stderr, "usage: word_at_once [LONGEST], %d to %d\n", SHORTEST, 1 << 20);
        return 2;
    }
    attn_context *context;
    attn_options options;
    attn_options_init(&options);
    options.threads = 1;
    check(NULL, attn_context_create(&context, &options));
    printf("microseconds a token\n");
    printf("%8s %12s %18s %8s\n", "length", "all at once", "one at a time", "ratio");
    for (int64_t length = SHORTEST; length <= longest; length *= 2) {
        struct text text = make_text(length);
        const double at_once = time_of(context, &text, all_at_once);
        const double one_by_one = time_of(context, &text, one_at_a_time);
        printf("%8lld %12.2f %18.2f %8.1f\n", (long long)length, at_once, one_by_one,
               one_by_one / at_once);
        if (!(difference(&text) <= 1e-5)) {
            fprintf(stderr, "the results differ by %g\n", difference(&text));
            return 1;
        }
        free(text.q);
    }
    attn_context_destroy(context);
    return 0;
}
