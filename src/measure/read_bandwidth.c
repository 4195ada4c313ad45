#include "measure/read_bandwidth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "measure/timing.h"

enum { PARTS_A_THREAD = 8, TRIES = 2, BEST_VARIANTS = 3 };

struct pass {
    const struct read_bandwidth *bandwidth;
    const struct read_variant *variant;
    int64_t parts, stride, steps;
};

static void read_part(void *state, int64_t item, int thread)
{
    (void)thread;
    const struct pass *pass = state;
    const struct read_variant *variant = pass->variant;
    read_loop *loop = pass->bandwidth->loops->read[variant->streams][variant->hint];
    int64_t part_size = pass->bandwidth->size / pass->parts / READ_STEP * READ_STEP;
    volatile uint64_t sum = loop(pass->bandwidth->memory + item * part_size, pass->stride,
                                 pass->steps, variant->distance);
    (void)sum;
}

/* GB/s of one pass over the memory. */
static double read_once(const struct read_bandwidth *bandwidth, const struct read_variant *variant)
{
    int threads = bandwidth->parallel->threads;
    struct pass pass = {bandwidth, variant, threads > 1 ? threads * PARTS_A_THREAD : 1, 0, 0};
    int64_t streams = INT64_C(1) << variant->streams;
    pass.steps = bandwidth->size / pass.parts / READ_STEP / streams;
    /* Streams that lie a power of two apart would fight for the same lines of a cache. */
    if (pass.steps % 2 == 0)
        pass.steps--;
    pass.stride = pass.steps * READ_STEP;

    double begin = timing_now();
    attn_parallel_run(bandwidth->parallel, pass.parts, read_part, &pass);
    double seconds = timing_now() - begin;
    return (double)(pass.parts * streams * pass.stride) / seconds * 1e-9;
}

static void list_variants(struct read_variant *variants)
{
    static const struct read_variant hints[] = {
        {.hint = READ_HINT_NONE, .distance = 0},    {.hint = READ_HINT_KEEP, .distance = 512},
        {.hint = READ_HINT_KEEP, .distance = 2048}, {.hint = READ_HINT_ONCE, .distance = 512},
        {.hint = READ_HINT_ONCE, .distance = 2048},
    };
    enum { HINTS = sizeof hints / sizeof hints[0] };
    _Static_assert(READ_VARIANTS == READ_STREAM_COUNT * HINTS, "each hint for each stream count");
    for (int i = 0; i < READ_VARIANTS; i++) {
        variants[i] = hints[i % HINTS];
        variants[i].streams = i / HINTS;
    }
}

static int faster_first(const void *a, const void *b)
{
    double first = ((const struct read_variant *)a)->rate;
    double second = ((const struct read_variant *)b)->rate;
    return (first < second) - (first > second);
}

bool read_bandwidth_open(struct read_bandwidth *bandwidth, attn_isa isa,
                         const struct attn_parallel *parallel, int64_t size,
                         struct attn_error *error)
{
    *bandwidth = (struct read_bandwidth){
        .loops = machine_loops_for(isa), .parallel = parallel, .size = size};
    if (!bandwidth->loops)
        return attn_error_set(error, "this build has no read loop for %s", attn_isa_name(isa));
    bandwidth->memory =
        attn_allocator_default.allocate(attn_allocator_default.user, (size_t)size, ATTN_ALIGNMENT);
    if (!bandwidth->memory)
        return attn_error_memory(error);
    memset(bandwidth->memory, 1, (size_t)size);

    list_variants(bandwidth->variants);
    for (int i = 0; i < READ_VARIANTS; i++) {
        for (int pass = 0; pass < TRIES; pass++) {
            double rate = read_once(bandwidth, &bandwidth->variants[i]);
            if (rate > bandwidth->variants[i].rate)
                bandwidth->variants[i].rate = rate;
        }
    }
    qsort(bandwidth->variants, READ_VARIANTS, sizeof bandwidth->variants[0], faster_first);
    return true;
}

void read_bandwidth_close(struct read_bandwidth *bandwidth)
{
    if (bandwidth->memory)
        attn_allocator_default.release(attn_allocator_default.user, bandwidth->memory);
    *bandwidth = (struct read_bandwidth){0};
}

double read_bandwidth_sample(const struct read_bandwidth *bandwidth)
{
    double best = 0;
    for (int i = 0; i < BEST_VARIANTS; i++) {
        double rate = read_once(bandwidth, &bandwidth->variants[i]);
        if (rate > best)
            best = rate;
    }
    return best;
}

void read_bandwidth_describe(const struct read_bandwidth *bandwidth, char *text, size_t size)
{
    static const char *const words[READ_HINT_COUNT] = {"no prefetch", "prefetch",
                                                       "non-temporal prefetch"};
    const struct read_variant *variant = &bandwidth->variants[0];
    int streams = 1 << variant->streams;
    int used = snprintf(text, size, "%d stream%s, %s", streams, streams > 1 ? "s" : "",
                        words[variant->hint]);
    if (variant->hint != READ_HINT_NONE && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, " %lld bytes ahead",
                 (long long)variant->distance);
}
