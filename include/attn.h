/* attn.h: exact attention on CPUs.
 *
 *     O = softmax(scale · Q·Kᵀ) · V
 *
 * (A. Vaswani et al., "Attention Is All You Need" (2017), equation 1), computed tile by tile with a
 * running maximum (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax" (2018)),
 * so that memory grows with L and never with L×L.
 *
 * Rules that hold for every function here:
 *   - Nothing prints, aborts, exits or keeps global state. A call that fails returns a status other
 *     than ATTN_SUCCESS, writes no output tensor, and attn_message() says which argument is wrong
 *     and what would be right.
 *   - A context is used by one thread at a time; any number of contexts may be used side by side.
 *   - Tensors belong to the caller. The library reads inputs, writes outputs and keeps no pointer
 *     to either after the call.
 *   - Shapes and strides count elements, never bytes.
 *
 * Compatibility: a settings struct carries its own size, so that later versions add fields at its
 * end; the soname (libattn.so.N) changes whenever a program built against an older header could
 * break: N is the major version, and 0.MINOR while that is 0.
 */
#ifndef ATTN_H
#define ATTN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTN_VERSION_MAJOR 0
#define ATTN_VERSION_MINOR 1
#define ATTN_VERSION_PATCH 0

#if defined(__GNUC__)
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

/* What a call returns. Values are stable; new ones may be added. */
typedef enum attn_status {
    ATTN_SUCCESS = 0,
    ATTN_ERROR_ARGUMENT = 1,    /* a pointer is missing or a setting is out of range */
    ATTN_ERROR_SHAPE = 2,       /* shapes that do not fit each other */
    ATTN_ERROR_TYPE = 3,        /* an element type that the call does not take in this place */
    ATTN_ERROR_OVERLAP = 4,     /* an output addresses one element twice or shares one */
    ATTN_ERROR_UNSUPPORTED = 5, /* valid, but not done by this version */
    ATTN_ERROR_MEMORY = 6       /* an allocation failed; the context stays usable */
} attn_status;

/* Element types. */
typedef enum attn_type {
    ATTN_F32 = 0, /* IEEE 754 binary32 */
    ATTN_BOOL = 1 /* one byte; 0 is false, all else is true */
} attn_type;

/* A view of four axes: [batch, head, length, dim]. Element (b, h, i, c) stands at
 * data + b·stride[0] + h·stride[1] + i·stride[2] + c·stride[3], counted in elements of `type`.
 * Strides of inputs may have any sign or be 0 (an expanded axis). `data` may be NULL where the
 * view has no element. Index arithmetic is done in 64 bits. */
typedef struct attn_tensor {
    void *data;
    attn_type type;
    int64_t shape[4];
    int64_t stride[4];
} attn_tensor;

/* The row-major view of `data` with this shape. */
ATTN_API attn_tensor attn_tensor_packed(void *data, attn_type type, int64_t batch, int64_t heads,
                                        int64_t length, int64_t dim);

/* Where the queries stand among the keys. Query i stands at key position i + offset: causal, window
 * and ALiBi all count from there. */
typedef enum attn_alignment {
    ATTN_ALIGN_TOP_LEFT = 0,     /* offset 0: query i at key i */
    ATTN_ALIGN_BOTTOM_RIGHT = 1, /* offset Lk − Lq of the whole tensors, also with key lengths */
    ATTN_ALIGN_OFFSET = 2        /* the field `offset` */
} attn_alignment;

/* A window side without a limit. */
#define ATTN_WINDOW_OPEN INT64_MAX

/* `offset` and window sides are within ± this bound (or ATTN_WINDOW_OPEN). */
#define ATTN_POSITION_LIMIT (INT64_C(1) << 60)

/* What happens between Q·Kᵀ and the softmax, in this order:
 *
 *     s = scale · (q·k)
 *     s = soft_cap · tanh(s / soft_cap)          if soft_cap > 0
 *     s = s + bias − slope·|i + offset − j|      where given
 *     keys excluded by lengths, causal, window and keep get weight exactly 0
 *
 * A final score of −inf is an exclusion too, whatever made it. K and V of an excluded key are never
 * read into a result: NaN or Inf there cannot leak. A row without any key has O = 0 and weights 0.
 * A large finite negative bias is a score like any other. A kept score of NaN or +inf makes its row
 * NaN, and that row only.
 *
 * Always start from attn_params_init. */
typedef struct attn_params {
    size_t size; /* sizeof(attn_params), set by attn_params_init */

    float scale;    /* NaN (the default): 1/√d_qk; any other value as it is, 0 and negative too */
    float soft_cap; /* 0 (the default): none; must be ≥ 0 and finite */

    attn_alignment alignment; /* default ATTN_ALIGN_TOP_LEFT */
    int64_t offset;           /* read with ATTN_ALIGN_OFFSET only */
    int causal;               /* not 0: key j is kept for query i iff j ≤ i + offset */
    int64_t window_left;      /* key j is kept iff j ≥ i + offset − window_left; default open */
    int64_t window_right;     /* and iff j ≤ i + offset + window_right; default open */

    /* [batch] or NULL: keys from key_lengths[b] on are excluded; 0..Lk. */
    const int64_t *key_lengths;
    /* NULL or ATTN_BOOL [B|1, H|1, Lq|1, Lk|1]: false excludes. */
    const attn_tensor *keep;
    /* NULL or ATTN_F32 [B|1, H|1, Lq|1, Lk|1]: added to the scores. */
    const attn_tensor *bias;
    /* [heads] or NULL; O. Press et al., "Train Short, Test Long" (2021). */
    const float *alibi_slopes;
    /* [heads] or NULL: one more logit in each softmax's denominator, without a value; a sink of
     * −inf is none. */
    const float *sinks;
} attn_params;

/* Defaults: dense attention, scale 1/√d_qk. */
ATTN_API void attn_params_init(attn_params *params);

/* Slopes of ALiBi for `heads` heads into slopes[heads]: 2^(−8(h+1)/n) for n = heads a power of two;
 * else those of the next lower power of two, then every other one of twice that power (the paper's
 * published code). heads ≥ 0. */
ATTN_API void attn_alibi_slopes(int64_t heads, float *slopes);

/* Instruction sets, lowest first. A context uses the highest one that the build, the CPU, the
 * operating system, the environment variable ATTN_ISA (a name below) and options.isa all allow. */
typedef enum attn_isa {
    ATTN_ISA_SCALAR = 0, /* "scalar": portable C, the reference */
    ATTN_ISA_AVX2 = 1,   /* "avx2": AVX2 and FMA */
    ATTN_ISA_BEST = 255  /* no limit */
} attn_isa;

/* How a context works. Start from attn_options_init. */
typedef struct attn_options {
    size_t size;  /* sizeof(attn_options), set by attn_options_init */
    int threads;  /* at most this many; 0 (the default): as many as the thread runtime gives */
    attn_isa isa; /* an upper limit; default ATTN_ISA_BEST */

    /* All memory of a context comes from here; both or neither are set. `allocate` returns memory
     * aligned to `alignment` (a power of two ≤ 64), or NULL. Called from one thread at a time. */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
} attn_options;

/* Defaults: the best ISA, the runtime's threads, the C library's allocator. */
ATTN_API void attn_options_init(attn_options *options);

typedef struct attn_context attn_context;

/* Makes a context. `options` may be NULL for the defaults.
 * ATTN_ERROR_ARGUMENT: context is NULL, options.size is unknown, threads < 0, an unknown ISA (also
 * in ATTN_ISA), or one of allocate and release without the other. ATTN_ERROR_MEMORY: no memory. On
 * failure *context is NULL. */
ATTN_API attn_status attn_context_create(attn_context **context, const attn_options *options);

/* Ends a context; NULL is allowed. */
ATTN_API void attn_context_destroy(attn_context *context);

/* The last failure of this context: one line, valid until its next call; "" after a success. Of
 * NULL, which attn_context_create leaves on failure, it says that there is no context. */
ATTN_API const char *attn_message(const attn_context *context);

/* The ISA and the number of threads that this context, not NULL, uses. */
ATTN_API attn_isa attn_context_isa(const attn_context *context);
ATTN_API int attn_context_threads(const attn_context *context);

/* "scalar", "avx2", …; "unknown" for a value that this version does not know. */
ATTN_API const char *attn_isa_name(attn_isa isa);

/* Attention.
 *   q      [B, H, Lq, d_qk]       ATTN_F32
 *   k      [B, Hkv, Lk, d_qk]     ATTN_F32; H a multiple of Hkv, head h reads key head h / (H/Hkv)
 *   v      [B, Hkv, Lk, d_v]      ATTN_F32
 *   o      [B, H, Lq, d_v]        ATTN_F32, written
 *   stats  [B, H, Lq, 2] or NULL  ATTN_F32, written: m, the row's largest kept score (its sink
 *          included), and l = Σ exp(s − m) over kept keys and the sink. LSE = m + ln l. A row with
 *          nothing has m = −inf, l = 0. Written also where d_v = 0.
 *   params NULL for the defaults.
 *
 * Sums are in f32. Workspace is O(L) at most and stays in the context for the next call.
 * Within one ISA a row's bits do not depend on B, H, Lq, strides, threads, or on whether stats are
 * asked for. Between ISAs and versions of this library they may differ; no particular bits are
 * promised.
 *
 * B, H, Lq or d_v = 0 is a success. ATTN_ERROR_ARGUMENT: a missing pointer, params.size unknown, a
 * setting out of its range, d_qk = 0 without a scale. ATTN_ERROR_SHAPE: shapes that do not fit
 * (Hkv = 0 with H > 0, H mod Hkv ≠ 0, K and V that differ, …). ATTN_ERROR_TYPE. ATTN_ERROR_OVERLAP:
 * an output that addresses one element twice, or shares one with an input or another output.
 * ATTN_ERROR_MEMORY. */
ATTN_API attn_status attn_forward(attn_context *context, const attn_params *params,
                                  const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                  const attn_tensor *o, const attn_tensor *stats);

/* The weights that attn_forward really used, rebuilt from its row statistics:
 *     weight(i, j) = exp(s(i, j) − m(i)) / l(i)
 * with scores of the same bits as the forward's.
 *   q, k, params  as given to attn_forward
 *   stats         as written by it, in a context of the same ISA
 *   begin         NULL for zeros, or the first batch, head, query and key that are wanted
 *   weights       [batches, heads, queries, keys] ATTN_F32, written: its shape says how many of
 *                 each are wanted, from begin on
 *
 * Weights are those before any dropout; with a sink a row sums to less than 1, else to 1 within
 * 1e-6, and to 0 in a row without a key. Memory beside the output is O(L).
 *
 * Errors as for attn_forward; ATTN_ERROR_SHAPE also where the part lies outside the tensors. */
ATTN_API attn_status attn_weights(attn_context *context, const attn_params *params,
                                  const attn_tensor *q, const attn_tensor *k,
                                  const attn_tensor *stats, const int64_t begin[4],
                                  const attn_tensor *weights);

/* "0.1.0": the version of the library that runs, which may be newer than this header. */
ATTN_API const char *attn_version(void);

#ifdef __cplusplus
}
#endif

#endif
