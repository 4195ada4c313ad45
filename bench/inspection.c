/* Inspects a model's worth of attention: for each layer random q, k and v of the shapes of
 * SmolLM2-135M (9 query heads, 3 key heads, d = 64, causal), and of every row the 8 largest
 * weights, the entropy and the maximum, of every key the sum. What is told of all layers is kept;
 * of the weights nothing is. Prints the seconds and the most memory that the process has had.
 *
 *     inspection [LENGTH [LAYERS]]          16384 and 30 unless told otherwise */
#include <attn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADS = 9, KEY_HEADS = 3, DIM = 64, TOP = 8 };

static double now(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* In MiB; 0 where the system does not tell. */
static double peak_memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[128];
    double kib = 0;
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtod(line + 6, NULL);
    if (status)
        fclose(status);
    return kib / 1024;
}

static void *allocate(int64_t count, size_t size)
{
    void *memory = malloc((size_t)count * size);
    if (!memory) {
        fprintf(stderr, "inspection: no memory\n");
        exit(1);
    }
    return memory;
}

static attn_tensor tensor(attn_type type, int64_t heads, int64_t length, int64_t width)
{
    return attn_tensor_packed(allocate(heads * length * width, 4), type, 1, heads, length, width);
}

/* Numbers in −1..1 by an xorshift generator (G. Marsaglia, "Xorshift RNGs" (2003)). */
static void fill(const attn_tensor *tensor, uint64_t *state)
{
    float *numbers = tensor->data;
    for (int64_t i = 0; i < tensor->shape[1] * tensor->shape[2] * tensor->shape[3]; i++) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        numbers[i] = (float)(*state >> 40) * 0x1p-23f - 1;
    }
}

/* What is kept of a layer. */
struct told {
    attn_tensor weights, keys, entropy, maximum, sums;
};

static struct told make_told(int64_t length)
{
    return (struct told){tensor(ATTN_F32, HEADS, length, TOP), tensor(ATTN_I32, HEADS, length, TOP),
                         tensor(ATTN_F32, HEADS, length, 1), tensor(ATTN_F32, HEADS, length, 1),
                         tensor(ATTN_F32, HEADS, length, 1)};
}

static void release_told(const struct told *told)
{
    free(told->weights.data);
    free(told->keys.data);
    free(told->entropy.data);
    free(told->maximum.data);
    free(told->sums.data);
}

static double mean(const attn_tensor *tensor)
{
    const float *numbers = tensor->data;
    const int64_t count = tensor->shape[1] * tensor->shape[2];
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)numbers[i];
    return sum / (double)count;
}

/* The context, and the tensors that layers use one after another. */
struct attention {
    attn_context *context;
    attn_tensor q, k, v, o;
    uint64_t random;
};

static void begin(struct attention *attention, int64_t length)
{
    if (attn_context_create(&attention->context, NULL) != ATTN_SUCCESS) {
        fprintf(stderr, "inspection: %s\n", attn_message(NULL));
        exit(1);
    }
    attention->q = tensor(ATTN_F32, HEADS, length, DIM);
    attention->k = tensor(ATTN_F32, KEY_HEADS, length, DIM);
    attention->v = tensor(ATTN_F32, KEY_HEADS, length, DIM);
    attention->o = tensor(ATTN_F32, HEADS, length, DIM);
    attention->random = 1;
}

static void end(const struct attention *attention)
{
    free(attention->q.data);
    free(attention->k.data);
    free(attention->v.data);
    free(attention->o.data);
    attn_context_destroy(attention->context);
}

/* One layer; the seconds that it took, without those for making numbers. */
static double inspect(struct attention *attention, const struct told *told)
{
    attn_params params;
    attn_inspection inspection;
    attn_params_init(&params);
    attn_inspection_init(&inspection);
    params.causal = 1;
    inspection.top_weights = &told->weights;
    inspection.top_keys = &told->keys;
    inspection.entropy = &told->entropy;
    inspection.maximum = &told->maximum;
    inspection.key_sums = &told->sums;
    fill(&attention->q, &attention->random);
    fill(&attention->k, &attention->random);
    fill(&attention->v, &attention->random);
    const double began = now();
    if (attn_forward_inspect(attention->context, &params, &attention->q, &attention->k,
                             &attention->v, &attention->o, NULL, &inspection) != ATTN_SUCCESS) {
        fprintf(stderr, "inspection: %s\n", attn_message(attention->context));
        exit(1);
    }
    return now() - began;
}

int main(int argc, char **argv)
{
    const int64_t length = argc > 1 ? strtoll(argv[1], NULL, 10) : 16384;
    const int64_t layers = argc > 2 ? strtoll(argv[2], NULL, 10) : 30;
    if (argc > 3 || length < 1 || length > INT64_C(1) << 24 || layers < 1 || layers > 1000) {
        fprintf(stderr,
                "usage: inspection [LENGTH [LAYERS]], 1 to 2^24 tokens, 1 to 1000 layers\n");
        return 2;
    }
    struct attention attention;
    struct told *told = allocate(layers, sizeof *told);
    begin(&attention, length);
    double seconds = 0, entropy = 0, received = 0;
    for (int64_t layer = 0; layer < layers; layer++) {
        told[layer] = make_told(length);
        seconds += inspect(&attention, &told[layer]);
    }
    for (int64_t layer = 0; layer < layers; layer++) {
        entropy += mean(&told[layer].entropy) / (double)layers;
        received += mean(&told[layer].sums) / (double)layers;
        release_told(&told[layer]);
    }
    printf("%" PRId64 " tokens, %" PRId64 " layers, %s, %d threads: %.1f s, peak memory %.0f MiB\n",
           length, layers, attn_isa_name(attn_context_isa(attention.context)),
           attn_context_threads(attention.context), seconds, peak_memory());
    /* A row's weights sum to 1, and so what the keys receive is 1 a key in the mean. */
    printf("mean entropy %.4f nats, a key receives %.6f in the mean\n", entropy, received);
    free(told);
    end(&attention);
    return 0;
}
