#include "bench_cases.h"

#include <stdio.h>

/* clang-format off */
#define SELF(type, kind, length, heads, d) \
    {ATTN_OPERATION_FORWARD, type, kind, length, length, heads, heads, d, d, false}
#define GROUPED(type, kind, length, heads, d) \
    {ATTN_OPERATION_FORWARD, type, kind, length, length, heads, (heads) / 4, d, d, false}
#define DECODE(type, queries, keys, heads, key_heads, d) \
    {ATTN_OPERATION_DECODE, type, BENCH_DENSE, queries, keys, heads, key_heads, d, d, false}
#define BACKWARD(type, kind, length, heads, key_heads, d) \
    {ATTN_OPERATION_BACKWARD, type, kind, length, length, heads, key_heads, d, d, false}
#define INSPECT(type, kind, length, heads, d, key_sums) \
    {ATTN_OPERATION_FORWARD_INSPECT, type, kind, length, length, heads, heads, d, d, key_sums}
/* clang-format on */

const struct bench_case bench_cases[] = {
    SELF(ATTN_F32, BENCH_DENSE, 128, 12, 64),
    SELF(ATTN_F32, BENCH_DENSE, 128, 12, 128),
    SELF(ATTN_F32, BENCH_DENSE, 512, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 2048, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 2048, 8, 128),
    /* One head: eight would take most of a minute. */
    SELF(ATTN_F32, BENCH_DENSE, 16384, 1, 128),
    SELF(ATTN_F32, BENCH_CAUSAL, 2048, 8, 64),
    SELF(ATTN_F32, BENCH_CAUSAL, 2048, 8, 128),
    GROUPED(ATTN_F32, BENCH_CAUSAL, 2048, 32, 128),
    SELF(ATTN_F32, BENCH_WINDOW, 16384, 8, 64),
    SELF(ATTN_F32, BENCH_VARLEN, 4096, 8, 64),
    SELF(ATTN_F32, BENCH_ALIBI, 2048, 8, 64),
    SELF(ATTN_F32, BENCH_SOFT_CAP, 2048, 8, 64),
    SELF(ATTN_F32, BENCH_BIAS, 2048, 8, 64),

    SELF(ATTN_BF16, BENCH_DENSE, 2048, 8, 64),
    SELF(ATTN_BF16, BENCH_DENSE, 2048, 8, 128),
    SELF(ATTN_BF16, BENCH_CAUSAL, 2048, 8, 64),
    SELF(ATTN_BF16, BENCH_CAUSAL, 2048, 8, 128),
    SELF(ATTN_BF16, BENCH_DENSE, 128, 12, 64),
    SELF(ATTN_F16, BENCH_DENSE, 2048, 8, 64),
    SELF(ATTN_F16, BENCH_DENSE, 2048, 8, 128),
    SELF(ATTN_F16, BENCH_CAUSAL, 2048, 8, 128),
    SELF(ATTN_I8, BENCH_DENSE, 2048, 8, 128),

    DECODE(ATTN_F32, 1, 8192, 32, 8, 128),
    DECODE(ATTN_BF16, 1, 8192, 32, 8, 128),
    DECODE(ATTN_F16, 1, 8192, 32, 8, 128),
    DECODE(ATTN_I8, 1, 8192, 32, 8, 128),
    DECODE(ATTN_F32, 1, 8192, 8, 8, 64),
    DECODE(ATTN_BF16, 1, 8192, 8, 8, 64),
    DECODE(ATTN_F32, 1, 32768, 8, 1, 128),
    DECODE(ATTN_F32, 1, 512, 32, 8, 128),
    DECODE(ATTN_F32, 4, 8192, 32, 8, 128),
    DECODE(ATTN_BF16, 16, 8192, 32, 8, 128),

    BACKWARD(ATTN_F32, BENCH_DENSE, 128, 12, 12, 64),
    BACKWARD(ATTN_F32, BENCH_DENSE, 512, 8, 8, 64),
    BACKWARD(ATTN_F32, BENCH_DENSE, 2048, 8, 8, 64),
    BACKWARD(ATTN_F32, BENCH_DENSE, 2048, 8, 8, 128),
    BACKWARD(ATTN_F32, BENCH_DENSE, 2048, 1, 1, 64),
    BACKWARD(ATTN_F32, BENCH_CAUSAL, 256, 12, 12, 64),
    BACKWARD(ATTN_F32, BENCH_CAUSAL, 2048, 8, 8, 64),
    BACKWARD(ATTN_F32, BENCH_CAUSAL, 2048, 8, 8, 128),
    BACKWARD(ATTN_F32, BENCH_CAUSAL, 2048, 32, 8, 128),
    BACKWARD(ATTN_F32, BENCH_WINDOW, 8192, 8, 8, 64),
    BACKWARD(ATTN_F32, BENCH_VARLEN, 4096, 8, 8, 64),
    BACKWARD(ATTN_F32, BENCH_BIAS, 2048, 8, 8, 64),
    BACKWARD(ATTN_F32, BENCH_DENSE, 1024, 8, 8, 80),
    BACKWARD(ATTN_BF16, BENCH_DENSE, 2048, 8, 8, 64),
    BACKWARD(ATTN_BF16, BENCH_DENSE, 2048, 8, 8, 128),
    BACKWARD(ATTN_BF16, BENCH_CAUSAL, 2048, 8, 8, 64),
    BACKWARD(ATTN_BF16, BENCH_CAUSAL, 2048, 8, 8, 128),
    BACKWARD(ATTN_F16, BENCH_DENSE, 2048, 8, 8, 64),

    INSPECT(ATTN_F32, BENCH_DENSE, 4096, 8, 64, false),
    INSPECT(ATTN_F32, BENCH_DENSE, 4096, 8, 64, true),
    INSPECT(ATTN_F32, BENCH_CAUSAL, 4096, 8, 64, false),
    INSPECT(ATTN_F32, BENCH_CAUSAL, 4096, 8, 64, true),
    INSPECT(ATTN_F32, BENCH_DENSE, 512, 8, 64, true),
    INSPECT(ATTN_BF16, BENCH_DENSE, 4096, 8, 64, true),

    /* Where tiles do not divide, or there is little to share. */
    SELF(ATTN_F32, BENCH_DENSE, 1024, 8, 1),
    SELF(ATTN_F32, BENCH_DENSE, 1024, 8, 40),
    SELF(ATTN_F32, BENCH_DENSE, 1024, 8, 80),
    SELF(ATTN_F32, BENCH_DENSE, 1024, 8, 96),
    SELF(ATTN_F32, BENCH_DENSE, 1024, 8, 256),
    {ATTN_OPERATION_FORWARD, ATTN_F32, BENCH_DENSE, 1024, 1024, 8, 8, 192, 128, false},
    {ATTN_OPERATION_FORWARD, ATTN_F32, BENCH_DENSE, 128, 2048, 8, 8, 64, 64, false},
    SELF(ATTN_F32, BENCH_DENSE, 1001, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 2048, 1, 64),
    SELF(ATTN_F32, BENCH_DENSE, 1, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 7, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 16, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 33, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 64, 8, 64),
    SELF(ATTN_F32, BENCH_DENSE, 64, 8, 128),
};
const size_t bench_case_count = sizeof bench_cases / sizeof bench_cases[0];

static const char *type_word(attn_type type)
{
    switch (type) {
    case ATTN_F16:
        return "f16";
    case ATTN_BF16:
        return "bf16";
    case ATTN_I8:
        return "i8";
    default:
        return "f32";
    }
}

static const char *operation_word(const struct bench_case *shape)
{
    switch (shape->operation) {
    case ATTN_OPERATION_BACKWARD:
        return "-backward";
    case ATTN_OPERATION_FORWARD_INSPECT:
        return shape->key_sums ? "-inspect-sums" : "-inspect";
    default:
        return "";
    }
}

static const char *kind_word(const struct bench_case *shape)
{
    if (shape->operation == ATTN_OPERATION_DECODE)
        return "decode";
    switch (shape->kind) {
    case BENCH_CAUSAL:
        return "causal";
    case BENCH_WINDOW:
        return "window256";
    case BENCH_VARLEN:
        return "varlen8";
    case BENCH_ALIBI:
        return "alibi";
    case BENCH_SOFT_CAP:
        return "softcap";
    case BENCH_BIAS:
        return "bias";
    default:
        return "dense";
    }
}

void bench_case_name(const struct bench_case *shape, char name[BENCH_NAME_SIZE])
{
    char length[48], heads[48] = "", value[24] = "";
    long long queries = shape->queries, keys = shape->keys;
    if (shape->operation != ATTN_OPERATION_DECODE)
        snprintf(length, sizeof length, keys == queries ? "L%lld" : "L%lld-Lk%lld", queries, keys);
    else if (queries == 1)
        snprintf(length, sizeof length, "Lk%lld", keys);
    else
        snprintf(length, sizeof length, "Lk%lld-Lq%lld", keys, queries);
    if (shape->key_heads != shape->heads)
        snprintf(heads, sizeof heads, "-h%lld-%lld", (long long)shape->heads,
                 (long long)shape->key_heads);
    else if (shape->heads != 8)
        snprintf(heads, sizeof heads, "-h%lld", (long long)shape->heads);
    if (shape->d_v != shape->d_qk)
        snprintf(value, sizeof value, "-v%lld", (long long)shape->d_v);
    snprintf(name, BENCH_NAME_SIZE, "%s%s-%s-%s%s-d%lld%s", type_word(shape->type),
             operation_word(shape), kind_word(shape), length, heads, (long long)shape->d_qk, value);
}

int64_t bench_case_start(const struct bench_case *shape, int64_t s)
{
    return shape->queries * s * s / (BENCH_SEQUENCES * BENCH_SEQUENCES);
}

static double kept_scores(const struct bench_case *shape)
{
    int64_t kept = 0;
    switch (shape->kind) {
    case BENCH_CAUSAL:
    case BENCH_WINDOW:
        for (int64_t i = 0; i < shape->queries; i++)
            kept +=
                shape->kind == BENCH_CAUSAL || i < BENCH_WINDOW_KEYS ? i + 1 : BENCH_WINDOW_KEYS;
        break;
    case BENCH_VARLEN:
        for (int64_t s = 0; s < BENCH_SEQUENCES; s++) {
            int64_t length = bench_case_start(shape, s + 1) - bench_case_start(shape, s);
            kept += length * length;
        }
        break;
    default:
        kept = shape->queries * shape->keys;
    }
    return (double)kept;
}

double bench_case_operations(const struct bench_case *shape)
{
    int64_t d_qk = shape->d_qk, d_v = shape->d_v;
    int64_t a_score =
        shape->operation == ATTN_OPERATION_BACKWARD ? 6 * d_qk + 4 * d_v : 2 * (d_qk + d_v);
    return (double)a_score * kept_scores(shape) * (double)shape->heads;
}

int64_t bench_type_size(attn_type type)
{
    switch (type) {
    case ATTN_F32:
    case ATTN_I32:
        return 4;
    case ATTN_F16:
    case ATTN_BF16:
        return 2;
    case ATTN_I8:
        return 1;
    default:
        return 0;
    }
}

int64_t bench_case_key_value_bytes(const struct bench_case *shape)
{
    int64_t rows = shape->key_heads * shape->keys;
    int64_t scales = shape->type == ATTN_I8 ? 2 * (int64_t)sizeof(float) : 0;
    return rows * ((shape->d_qk + shape->d_v) * bench_type_size(shape->type) + scales);
}
