#include "measure/fma_peak.h"

#include "measure/timing.h"

/* Work comes in items that are short against a run: threads share them as they are free, and a
 * runtime with fewer threads than asked for gives the rate of those. */
static const double item_seconds = 50e-6;
enum { ITEMS_A_THREAD = 10, RUNS = 4 };

struct run {
    const struct fma_peak *peak;
    int64_t rounds;
};

static void do_item(void *state, int64_t item, int thread)
{
    (void)item;
    (void)thread;
    const struct run *run = state;
    volatile float result = run->peak->loops->multiply_add(run->rounds);
    (void)result;
}

static double time_items(const struct fma_peak *peak, int64_t items, int64_t rounds)
{
    struct run run = {peak, rounds};
    double begin = timing_now();
    if (items == 1)
        do_item(&run, 0, 0);
    else
        attn_parallel_run(peak->parallel, items, do_item, &run);
    return timing_now() - begin;
}

bool fma_peak_open(struct fma_peak *peak, attn_isa isa, const struct attn_parallel *parallel)
{
    *peak = (struct fma_peak){machine_loops_for(isa), parallel, 256};
    if (!peak->loops)
        return false;
    while (time_items(peak, 1, peak->rounds) < item_seconds)
        peak->rounds *= 2;
    return true;
}

double fma_peak_sample(const struct fma_peak *peak)
{
    int64_t items = (int64_t)ITEMS_A_THREAD * peak->parallel->threads;
    double operations = (double)(items * peak->rounds * peak->loops->operations_a_round);
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        double rate = operations / time_items(peak, items, peak->rounds) * 1e-9;
        if (rate > best)
            best = rate;
    }
    return best;
}
