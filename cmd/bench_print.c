#include "bench_print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/parallel.h"

enum { NAME_WIDTH = 32, CELL_SIZE = 32 };

void bench_add_heading(struct attn_buffer *out, const struct bench_machine *machine,
                       attn_precision precision)
{
    char cpu[128], loop[64];
    attn_cpu_name(cpu, sizeof cpu);
    read_bandwidth_describe(&machine->bandwidth, loop, sizeof loop);
    attn_buffer_format(out, "cpu:        %s\n", cpu[0] ? cpu : "unknown");
    attn_buffer_format(out, "isa:        %s, precision %s\n", attn_isa_name(machine->isa),
                       precision == ATTN_PRECISION_BF16 ? "bf16 where the CPU has it" : "exact");
    attn_buffer_format(out, "threads:    %d (%s)\n", machine->threads, attn_parallel_runtime());
    attn_buffer_format(
        out, "peak:       %.1f GFLOP/s (%s in f32)\n", fma_peak_sample(&machine->peak),
        machine->isa == ATTN_ISA_SCALAR ? "multiplications and additions" : "multiply-adds");
    attn_buffer_format(out, "bandwidth:  %.1f GB/s (%s; caches hold %.0f MiB)\n\n",
                       read_bandwidth_sample(&machine->bandwidth), loop,
                       (double)machine->cache / (1 << 20));
    attn_buffer_format(out, "%-*s %10s %8s %8s %7s %13s %14s\n", NAME_WIDTH, "case", "ms",
                       "GFLOP/s", "of peak", "GB/s", "of bandwidth", "workspace KiB");
}

/* A number, times `factor` and with `unit` behind it; "-" for NaN. */
static const char *cell(char text[CELL_SIZE], double value, int decimals, double factor,
                        const char *unit)
{
    if (isnan(value))
        return "-";
    snprintf(text, CELL_SIZE, "%.*f%s", decimals, value * factor, unit);
    return text;
}

void bench_add_row(struct attn_buffer *out, const char *name, const struct bench_result *result)
{
    char ms[CELL_SIZE], gflops[CELL_SIZE], peak[CELL_SIZE], gbps[CELL_SIZE], bandwidth[CELL_SIZE];
    int decimals = result->milliseconds < 1 ? 5 : result->milliseconds < 100 ? 3 : 1;
    attn_buffer_format(
        out, "%-*s %10s %8s %8s %7s %13s %14.1f", NAME_WIDTH, name,
        cell(ms, result->milliseconds, decimals, 1, ""), cell(gflops, result->gflops, 1, 1, ""),
        cell(peak, result->of_peak, 1, 100, "%"), cell(gbps, result->gbps, 1, 1, ""),
        cell(bandwidth, result->of_bandwidth, 1, 100, "%"), (double)result->workspace / 1024);
    if (!isnan(result->of_forward))
        attn_buffer_format(out, "   %.2f times the forward pass", result->of_forward);
    attn_buffer_add_text(out, "\n");
}

static void add_number(struct attn_buffer *out, const char *key, double value)
{
    attn_buffer_format(out, ", \"%s\": ", key);
    attn_buffer_add_json_float(out, (float)value);
}

void bench_add_json(struct attn_buffer *out, const char *name, const struct bench_result *result)
{
    attn_buffer_add_text(out, "{\"name\": ");
    attn_buffer_add_json_string(out, name, strlen(name));
    add_number(out, "ms", result->milliseconds);
    add_number(out, "gflops", result->gflops);
    add_number(out, "of_peak", result->of_peak);
    add_number(out, "gbps", result->gbps);
    add_number(out, "of_bandwidth", result->of_bandwidth);
    add_number(out, "of_forward", result->of_forward);
    attn_buffer_format(out, ", \"workspace\": %lld, \"isa\": \"%s\", \"threads\": %d}\n",
                       (long long)result->workspace, attn_isa_name(result->isa), result->threads);
}
