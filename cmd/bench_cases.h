/* The standard shapes of `attn bench attention` and their names. */
#ifndef ATTN_CMD_BENCH_CASES_H
#define ATTN_CMD_BENCH_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn.h"

enum bench_kind {
    BENCH_DENSE,
    BENCH_CAUSAL,
    BENCH_WINDOW,   /* causal, BENCH_WINDOW_KEYS keys with the query's own */
    BENCH_VARLEN,   /* BENCH_SEQUENCES packed sequences of unequal lengths, each dense */
    BENCH_ALIBI,    /* dense with ALiBi */
    BENCH_SOFT_CAP, /* dense with a soft cap of 50 */
    BENCH_BIAS      /* dense with an additive mask that all heads share */
};

enum { BENCH_WINDOW_KEYS = 256, BENCH_SEQUENCES = 8, BENCH_TOP = 8, BENCH_NAME_SIZE = 160 };

/* Batch 1. K and V are of `type`; Q and O too, but F32 where it is ATTN_I8. In a backward pass all
 * gradients are. */
struct bench_case {
    attn_operation operation; /* forward, decode, backward or forward_inspect */
    attn_type type;
    enum bench_kind kind;
    int64_t queries, keys, heads, key_heads, d_qk, d_v;
    bool key_sums; /* of an inspection, beside the BENCH_TOP largest weights, entropy and maximum */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_case_count;

/* TYPE-KIND-L…-h…-d…, without -h… for 8 heads, or TYPE-backward-KIND-…,
 * TYPE-inspect-KIND-…, TYPE-inspect-sums-KIND-…: see 'attn help bench'. */
void bench_case_name(const struct bench_case *shape, char name[BENCH_NAME_SIZE]);

/* Where packed sequence s begins and, as that of sequence s + 1, ends: 0 ≤ s ≤ BENCH_SEQUENCES.
 * Sequence s has 2s + 1 parts of the length. */
int64_t bench_case_start(const struct bench_case *shape, int64_t s);

/* 2·(d_qk + d_v) for each score that is kept, in all heads, 6·d_qk + 4·d_v in a backward pass; exp
 * and what an inspection adds are not counted. */
double bench_case_operations(const struct bench_case *shape);

/* Bytes of K and V with the scales of their rows. */
int64_t bench_case_key_value_bytes(const struct bench_case *shape);

/* Bytes of an element; 0 for a type that no case has. */
int64_t bench_type_size(attn_type type);

#endif
