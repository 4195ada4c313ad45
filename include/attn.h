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
#define ATTN_VERSION_MINOR 6
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

/* Element types. 16-bit and 8-bit elements are converted on the way in: every sum is in f32. */
typedef enum attn_type {
    ATTN_F32 = 0,  /* IEEE 754 binary32 */
    ATTN_BOOL = 1, /* one byte; 0 is false, all else is true */
    ATTN_F64 = 2,  /* IEEE 754 binary64, for checking: plain C, all sums in f64 */
    ATTN_F16 = 3,  /* IEEE 754 binary16 */
    ATTN_BF16 = 4, /* the upper half of a binary32 */
    ATTN_I8 = 5,   /* a signed byte, times the scale of its row (params.key_scales, value_scales) */
    ATTN_I32 = 6   /* a signed integer: places of keys, which attn_inspect writes */
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
    ATTN_ALIGN_TOP_LEFT = 0, /* offset 0: query i at key i */
    /* offset Lk − Lq: of the whole tensors, also with key lengths; of each sequence where sequences
     * are packed; key_lengths[b] − Lq with a block table */
    ATTN_ALIGN_BOTTOM_RIGHT = 1,
    ATTN_ALIGN_OFFSET = 2 /* the field `offset` */
} attn_alignment;

/* A window side without a limit. */
#define ATTN_WINDOW_OPEN INT64_MAX

/* `offset` and window sides are within ± this bound (or ATTN_WINDOW_OPEN). */
#define ATTN_POSITION_LIMIT (INT64_C(1) << 60)

/* How products may be rounded. */
typedef enum attn_precision {
    ATTN_PRECISION_EXACT = 0, /* every product and sum in f32 (f64 for f64 tensors) */
    /* Where q and k are bf16 and the CPU has bf16 dot products (AVX512_BF16, AMX-BF16), scores may
     * be made of those; where v is bf16 too and there is no dropout, the weights are rounded to
     * bf16 before they meet V. Sums stay f32. docs/accuracy.md states the bound. Elsewhere it is as
     * exact; attn_explain tells which. For gradients see attn_backward.
     *
     * The first call with it asks Linux for the process's permission to use AMX, where the CPU has
     * that: alternate signal stacks then need room for its registers (getauxval(AT_MINSIGSTKSZ)
     * bytes). Where a thread has a smaller one, AMX is not used. */
    ATTN_PRECISION_BF16 = 1
} attn_precision;

/* A tile of scores as a callback sees it: query `query` + i of head `head` with key `key` + j is
 * scores[i·query_stride + j·key_stride], 0 ≤ i < queries, 0 ≤ j < keys. Queries and keys count from
 * the begin of their sequence. */
typedef struct attn_score_tile {
    int64_t sequence; /* the batch, or the packed sequence */
    int64_t head, query, key;
    int64_t queries, keys;
    float *scores;
    int64_t query_stride, key_stride;
} attn_score_tile;

/* Changes the scores of a tile in any way; −inf excludes. What a score becomes may depend on it and
 * on its place, never on which tile it came in. f64 scores come rounded to f32; those that it
 * leaves as they are stay f64. Runs on any thread of the context, on several at once, and must not
 * call back into the context. */
typedef void attn_score_callback(void *user, const attn_score_tile *tile);

/* The derivative of change_scores, for attn_backward: `scores` are those that change_scores was
 * given, and `gradients`, which lie alike, hold ∂L/∂(what it made of them) and are changed to
 * ∂L/∂(what it was given). Excluded ones hold 0, and what they become is not read. In f64 both come
 * rounded to f32, and gradients that it leaves as they are stay f64. Threads as there. */
typedef void attn_score_gradient_callback(void *user, const attn_score_tile *scores,
                                          float *gradients);

/* Narrows the keys that queries query..query+queries−1 of a head look at to *begin..*end−1, which
 * hold 0 and the number of keys on entry; all other keys are excluded and never computed. What lies
 * outside 0..keys is cut off, and *end ≤ *begin names none. It must name every key that
 * change_scores leaves above −inf for any of these queries, and change_scores excludes what a
 * single one of them does not see: how queries come together is not promised. */
typedef void attn_key_range_callback(void *user, int64_t sequence, int64_t head, int64_t query,
                                     int64_t queries, int64_t *begin, int64_t *end);

/* What happens between Q·Kᵀ and the softmax, in this order:
 *
 *     s = scale · (q·k)
 *     s = soft_cap · tanh(s / soft_cap)          if soft_cap > 0
 *     s = s + bias − slope·|i + offset − j|      where given
 *     s = what change_scores makes of it         where given
 *     keys excluded by lengths, causal, window, documents and keep get weight exactly 0
 *
 * A final score of −inf is an exclusion too, whatever made it. K and V of an excluded key are never
 * read into a result: NaN or Inf there cannot leak. A row without any key has O = 0 and weights 0.
 * A large finite negative bias is a score like any other. A kept score of NaN or +inf makes its row
 * NaN, and that row only.
 *
 * Always start from attn_params_init. A struct of an older header is read as far as it goes. */
typedef struct attn_params {
    size_t size; /* sizeof(attn_params), set by attn_params_init */

    float scale;    /* NaN (the default): 1/√d_qk; any other value as it is, 0 and negative too */
    float soft_cap; /* 0 (the default): none; must be ≥ 0 and finite */

    attn_alignment alignment; /* default ATTN_ALIGN_TOP_LEFT */
    int64_t offset;           /* read with ATTN_ALIGN_OFFSET only */
    int causal;               /* not 0: key j is kept for query i iff j ≤ i + offset */
    int64_t window_left;      /* key j is kept iff j ≥ i + offset − window_left; default open */
    int64_t window_right;     /* and iff j ≤ i + offset + window_right; default open */

    /* [batch] or NULL: keys from key_lengths[b] on are excluded; 0..Lk. With packed sequences
     * [sequences], each at most its sequence's keys. */
    const int64_t *key_lengths;
    /* NULL or ATTN_BOOL [B|1, H|1, Lq|1, Lk|1]: false excludes. */
    const attn_tensor *keep;
    /* NULL or F32, F16, BF16 (F64 with f64 tensors) [B|1, H|1, Lq|1, Lk|1]: added to the scores. */
    const attn_tensor *bias;
    /* [heads] or NULL; O. Press et al., "Train Short, Test Long" (2021). */
    const float *alibi_slopes;
    /* [heads] or NULL: one more logit in each softmax's denominator, without a value; a sink of
     * −inf is none. */
    const float *sinks;

    /* Since 0.2. */

    attn_precision precision; /* default ATTN_PRECISION_EXACT */

    /* Packed sequences: `sequences` > 0 says that batch is 1, and that sequence s has the queries
     * query_starts[s]..query_starts[s+1]−1 and the keys key_starts[s]..key_starts[s+1]−1 of the
     * tensors; it sees no others. Both are [sequences + 1], begin with 0, do not fall, and end with
     * at most Lq and Lk (rows beyond belong to no sequence: their O and statistics are those of a
     * row without a key). Positions count from a sequence's begin; rows of keep, bias and documents
     * from the tensors', but keys from the sequence's begin with a block table (documents are
     * unsupported there). 0 (the default): each batch is a sequence, and the starts are not read.
     */
    int64_t sequences;
    const int64_t *query_starts;
    const int64_t *key_starts; /* NULL with a block table */

    /* [batch] or [sequences], or NULL: keys j < prefix_lengths[b] are kept whatever causal and
     * window say; ≥ 0. */
    const int64_t *prefix_lengths;

    /* [B][Lq] and [B][Lk], or both NULL: a query keeps the keys of its own document only. Runs of
     * equal numbers are cheap: blocks of keys without the document are skipped. */
    const int64_t *query_documents;
    const int64_t *key_documents;

    /* NULL, or see their types. */
    attn_score_callback *change_scores;
    attn_key_range_callback *key_range;
    void *callback_user;

    /* F32 [B|1, Hkv|1, Lk|1, 1], given where k or v is ATTN_I8: what each row is multiplied by.
     * With a block table their axes are those of k and v. */
    const attn_tensor *key_scales;
    const attn_tensor *value_scales;

    /* Paged keys and values. With a table, k is [pages, Hkv, page length, d_qk] and v alike; key j
     * of batch (or sequence) b stands in page block_table[b·block_table_width + j / page length];
     * Lk is block_table_width · page length; key_lengths must be given, and only the entries that
     * they reach are read. NULL (the default): k and v are as they are. */
    const int32_t *block_table;
    int64_t block_table_width;

    /* Since 0.3. */

    /* The probability with which a weight is left out while learning, 0 (the default)..1; the
     * others are multiplied by 1/(1 − dropout), and with 1 O = 0. Statistics and attn_weights are
     * those before dropout. Weight (b, h, i, j) is left out iff word j mod 4 of Philox4x32-10 (J.
     * Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011)) with the seed as key
     * (its lower half first) and the counter (j div 4, i + dropout_query, h, b + dropout_batch),
     * each modulo 2³², is below dropout·2³². b is the batch or the packed sequence; i and j count
     * from the begin of their sequence. So parts of a batch or of the queries draw what the whole
     * would, and attn_backward draws what attn_forward drew. A dropped key is kept otherwise: NaN
     * in its V makes NaN. attn_decode refuses it (ATTN_ERROR_UNSUPPORTED). */
    float dropout;
    uint64_t dropout_seed;
    int64_t dropout_batch, dropout_query; /* ≥ 0 */

    /* attn_backward refuses change_scores without it (ATTN_ERROR_UNSUPPORTED). */
    attn_score_gradient_callback *change_gradients;
} attn_params;

/* Defaults: dense attention, scale 1/√d_qk. */
ATTN_API void attn_params_init(attn_params *params);

/* Slopes of ALiBi for `heads` heads into slopes[heads]: 2^(−8(h+1)/n) for n = heads a power of two;
 * else those of the next lower power of two, then every other one of twice that power (the paper's
 * published code). heads ≥ 0. */
ATTN_API void attn_alibi_slopes(int64_t heads, float *slopes);

/* Instruction sets; those of an architecture lowest first (scalar, AVX2, AVX-512; scalar, NEON). A
 * context uses the highest one that the build, the CPU, the operating system, the environment
 * variable ATTN_ISA (a name below; empty is not set) and options.isa all allow. A set of another
 * architecture allows scalar alone. */
typedef enum attn_isa {
    ATTN_ISA_SCALAR = 0, /* "scalar": portable C, the reference */
    ATTN_ISA_AVX2 = 1,   /* "avx2": AVX2, FMA and F16C */
    ATTN_ISA_AVX512 = 2, /* "avx512": AVX-512 F, VL, DQ and BW */
    ATTN_ISA_NEON = 3,   /* "neon": Advanced SIMD of AArch64 */
    ATTN_ISA_BEST = 255  /* no limit */
} attn_isa;

/* A loop over `items` independent items on the caller's threads: calls body(state, item, thread)
 * once for each item in 0..items−1, with a thread number in 0..options.threads−1 that no two calls
 * share at the same time, and returns when all are done. */
typedef void attn_parallel_loop(void *user, int64_t items,
                                void (*body)(void *state, int64_t item, int thread), void *state);

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

    /* Since 0.2. NULL, or the host's own threads, which then do all parallel work of the context;
     * `threads` says how many numbers they have and must be given. */
    attn_parallel_loop *parallel_for;
    void *parallel_user;
} attn_options;

/* Defaults: the best ISA, the runtime's threads, the C library's allocator. */
ATTN_API void attn_options_init(attn_options *options);

typedef struct attn_context attn_context;

/* Makes a context. `options` may be NULL for the defaults.
 * ATTN_ERROR_ARGUMENT: context is NULL, options.size is unknown, threads < 0, an unknown ISA (also
 * in ATTN_ISA), one of allocate and release without the other, or parallel_for without threads.
 * ATTN_ERROR_MEMORY: no memory. On failure *context is NULL.
 *
 * Threads come from the host's parallel_for, else from the runtime of the build: OpenMP, which a
 * BLAS of the same runtime shares, POSIX threads that the context keeps, or none. Inside an OpenMP
 * region of the host a call works on its own thread alone. In a child after fork a context works on
 * one thread. (With OpenMP a host that has run regions of its own before fork must not let the
 * child run any: that is the runtime's own rule.) */
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
 *   q      [B, H, Lq, d_qk]       F32, F16, BF16, or F64 with all others F64
 *   k      [B, Hkv, Lk, d_qk]     F32, F16, BF16, I8; H a multiple of Hkv, head h reads key head
 *                                 h / (H/Hkv)
 *   v      [B, Hkv, Lk, d_v]      F32, F16, BF16, I8
 *   o      [B, H, Lq, d_v]        F32 or q's type, written (rounded to nearest even)
 *   stats  [B, H, Lq, 2] or NULL  F32 (F64 with f64 tensors), written: m, the row's largest kept
 *          score (its sink included), and l = Σ exp(s − m) over kept keys and the sink. LSE = m +
 *          ln l. A row with nothing has m = −inf, l = 0. Written also where d_v = 0.
 *   params NULL for the defaults.
 *
 * Sums are in f32 (F64: in f64). Workspace is a fixed amount a thread for given dims, beside what
 * grows with Lk or the sequences alone (a number a block of keys); it stays in the context for the
 * next call, and attn_explain tells how much it is. Keys that no query of a block keeps by lengths,
 * causal, window, prefix, documents or key_range are never computed.
 *
 * Within one ISA and precision a row's bits do not depend on B, H, Lq, strides, pages, threads, or
 * on whether stats are asked for, nor on the caller's floating-point modes (rounding,
 * flush-to-zero), which are left as they were. Between ISAs and versions of this library they may
 * differ; no particular bits are promised. docs/accuracy.md bounds the error.
 *
 * B, H, Lq or d_v = 0 is a success. ATTN_ERROR_ARGUMENT: a missing pointer, params.size unknown, a
 * setting out of its range, d_qk = 0 without a scale. ATTN_ERROR_SHAPE: shapes that do not fit
 * (Hkv = 0 with H > 0, H mod Hkv ≠ 0, K and V that differ, …). ATTN_ERROR_TYPE. ATTN_ERROR_OVERLAP:
 * an output that addresses one element twice, or shares one with an input or another output.
 * ATTN_ERROR_MEMORY. */
ATTN_API attn_status attn_forward(attn_context *context, const attn_params *params,
                                  const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                  const attn_tensor *o, const attn_tensor *stats);

/* Where gradients go: each may be NULL, for one that is not wanted. All are written, not added to,
 * and all are F64 where q is. */
typedef struct attn_gradients {
    size_t size;          /* sizeof(attn_gradients), set by attn_gradients_init */
    const attn_tensor *q; /* the shape of q, F32 or q's type */
    const attn_tensor *k; /* the shape of k, F32 or k's type: summed over the heads of a group */
    const attn_tensor *v; /* the shape of v, F32 or v's type: the same */
    /* The shape of params.bias, F32: summed over the axes along which the bias is one number. The
     * gradient of an excluded score is 0. Costs parallel work where the bias is shared by batches
     * or heads. */
    const attn_tensor *bias;
    const attn_tensor *sinks; /* [1, H, 1, 1] F32, summed over batches and queries */
} attn_gradients;

/* No gradient wanted. */
ATTN_API void attn_gradients_init(attn_gradients *gradients);

/* The gradients of a number L that depends on attn_forward's output, from d_o = ∂L/∂o:
 *     D = rowsum(d_o∘o)        P = exp(s − m)/l          dV = Pᵀ·d_o        dP = d_o·Vᵀ
 *     dS = P∘(dP − D)          dQ = scale·dS·K           dK = scale·dSᵀ·Q
 * (T. Dao et al., "FlashAttention" (2022), appendix B.4), through soft cap, dropout and
 * change_gradients where they are used; scores are computed again, with the same bits as in the
 * forward pass.
 *   q, k, v, params  as given to attn_forward
 *   o, stats         as written by it, in a context of the same ISA; o [B, H, Lq, d_v] F32 or q's
 *                    type. With an o of 16 bits D has its rounding (docs/accuracy.md): where the
 *                    f32 output is at hand, give that
 *   d_o              [B, H, Lq, d_v], F32 or q's type (F64: F64)
 *   gradients        what is wanted; of the others nothing is written
 *
 * Rows without a key get and give 0, and so does an excluded score: NaN or Inf in q, k, v or d_o of
 * a pair that is excluded does not reach the other one's gradient. Sums are in f32 (F64: in f64);
 * with params.precision ATTN_PRECISION_BF16, and q, k, v and d_o all bf16, the five products may
 * take weights and their gradients rounded to bf16. Memory beside the outputs is O(L): up to eight
 * times dQ in f32, fewer where batches and heads are many, and for each thread rows of K and V, at
 * most all of a sequence.
 *
 * The bits of a result are the same for any number of threads, any strides, and whichever other
 * gradients are wanted. That a batch has the bits that it would have alone is not promised here.
 *
 * B, H, Lq, Lk or d_v = 0 is a success, with gradients of 0. Errors as for attn_forward, and:
 * ATTN_ERROR_ARGUMENT: o, stats, d_o or gradients is NULL, gradients.size is unknown, a gradient of
 * a bias or of sinks that are not given. ATTN_ERROR_OVERLAP: a gradient that addresses one element
 * twice, or shares one with another gradient or with an input: o, stats and d_o are inputs here.
 * ATTN_ERROR_UNSUPPORTED: i8 or paged keys or values, change_scores without change_gradients. */
ATTN_API attn_status attn_backward(attn_context *context, const attn_params *params,
                                   const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                   const attn_tensor *o, const attn_tensor *stats,
                                   const attn_tensor *d_o, const attn_gradients *gradients);

/* The most queries a sequence may have in attn_decode. */
#define ATTN_DECODE_MAX_QUERIES 16

/* Attention of a few queries with many keys, as in generating text: the same result as
 * attn_forward's within the bound of docs/accuracy.md, arranged so that each row of K and V is read
 * once for all queries of its group, and long K and V are shared by threads in chunks of a fixed
 * size whose results are merged by (m, l).
 *
 * Arguments and errors as for attn_forward (F64 included); ATTN_ERROR_SHAPE also where a sequence
 * has more than ATTN_DECODE_MAX_QUERIES queries. A row's bits keep the same law, with decode
 * itself: they do not depend on B, H, Lq, threads or pages. Between attn_decode and attn_forward
 * bits may differ, and attn_weights keeps the bits of attn_forward's scores. params.precision
 * changes nothing here. Workspace grows with H · Lk only where one head's keys are shared by
 * threads, by one row a chunk. */
ATTN_API attn_status attn_decode(attn_context *context, const attn_params *params,
                                 const attn_tensor *q, const attn_tensor *k, const attn_tensor *v,
                                 const attn_tensor *o, const attn_tensor *stats);

/* One result from two partial ones, over keys that the two have apart:
 *     m = max(m₁, m₂)     l = l₁·exp(m₁ − m) + l₂·exp(m₂ − m)
 *     o = (o₁·l₁·exp(m₁ − m) + o₂·l₂·exp(m₂ − m)) / l
 *   o1, o2, o              [B, H, L, d_v] F32, F16 or BF16, or all F64; o is written
 *   stats1, stats2         F32 (F64): [B, H, L, 2], (m, l) as attn_forward writes them, or
 *                          [B, H, L, 1], a log-sum-exp (natural), which counts as m = LSE, l = 1
 *   stats                  NULL, or of either form, written
 * Part by part any number can be merged. m = −inf is an empty part, whatever its o and l say; of
 * two empty parts o = 0, m = −inf and l = 0 (LSE −inf). A sink belongs to one of the parts. An
 * output shares no element with an input or with the other output.
 * ATTN_ERROR_ARGUMENT, ATTN_ERROR_SHAPE, ATTN_ERROR_TYPE, ATTN_ERROR_OVERLAP. */
ATTN_API attn_status attn_merge(attn_context *context, const attn_tensor *o1,
                                const attn_tensor *stats1, const attn_tensor *o2,
                                const attn_tensor *stats2, const attn_tensor *o,
                                const attn_tensor *stats);

/* What attn_explain is asked about. */
typedef enum attn_operation {
    ATTN_OPERATION_FORWARD = 0,
    ATTN_OPERATION_DECODE = 1,
    ATTN_OPERATION_WEIGHTS = 2,
    ATTN_OPERATION_BACKWARD = 3, /* of the gradients of q, k and v, in f32; d_o like o */
    /* of everything in an attn_inspection that can be told, with the 8 largest weights of a row: */
    ATTN_OPERATION_INSPECT = 4,        /* attn_inspect */
    ATTN_OPERATION_FORWARD_INSPECT = 5 /* attn_forward_inspect */
} attn_operation;

/* How a call would be done. */
typedef struct attn_explanation {
    size_t size; /* sizeof(attn_explanation), set by the caller */
    attn_isa isa;
    attn_precision precision; /* what is used, not what was allowed */
    int threads;              /* that can have work at once */
    int64_t workspace;        /* bytes that the context needs for it */
    int64_t items;            /* independent parts that threads share */
    int64_t panel_queries;    /* queries that go through the keys together; decode: queries that
                                 share one pass over a row of K */
    int64_t keys_a_block;     /* keys whose scores are held at once; decode: keys a chunk */
    char text[512];           /* the same in words, one line, and what is converted or copied on
                                 the way and why */
} attn_explanation;

/* Tells how a call with these arguments would be done, checking them as the call would. q, k, v and
 * o need shapes, strides and types; where their data is NULL, what depends on addresses (overlap,
 * alignment) is not checked. What params point to must be there. v and o are not looked at for
 * ATTN_OPERATION_WEIGHTS and ATTN_OPERATION_INSPECT and may be NULL. Errors as for the operation;
 * ATTN_ERROR_ARGUMENT also for an unknown operation or size. */
ATTN_API attn_status attn_explain(attn_context *context, attn_operation operation,
                                  const attn_params *params, const attn_tensor *q,
                                  const attn_tensor *k, const attn_tensor *v, const attn_tensor *o,
                                  attn_explanation *explanation);

/* The weights that attn_forward really used, rebuilt from its row statistics:
 *     weight(i, j) = exp(s(i, j) − m(i)) / l(i)
 * with scores of the same bits as the forward's.
 *   q, k, params  as given to attn_forward
 *   stats         as written by it, in a context of the same ISA
 *   begin         NULL for zeros, or the first batch, head, query and key that are wanted
 *   weights       [batches, heads, queries, keys] F32 (F64 with f64 tensors), written: its shape
 *                 says how many of each are wanted, from begin on
 *
 * With packed sequences queries and keys are rows of the tensors, and weights between two sequences
 * are 0; with a block table keys count from the begin of the query's own sequence. With a sink a
 * row sums to less than 1, else to 1 within 1e-6, and to 0 in a row without a key. Memory beside
 * the output is O(L).
 *
 * Errors as for attn_forward; ATTN_ERROR_SHAPE also where the part lies outside the tensors. */
ATTN_API attn_status attn_weights(attn_context *context, const attn_params *params,
                                  const attn_tensor *q, const attn_tensor *k,
                                  const attn_tensor *stats, const int64_t begin[4],
                                  const attn_tensor *weights);

/* The most weights of a row that an inspection names. */
#define ATTN_TOP_LIMIT 64

/* What is told of the weights, each where its tensor is not NULL. All are written, of any strides.
 * Weights are those of attn_weights: before dropout, and with a sink in their denominator. Numbers
 * are F32, or F64 with f64 tensors. */
typedef struct attn_inspection {
    size_t size; /* sizeof(attn_inspection), set by attn_inspection_init */

    /* The k largest weights of each row and where their keys stand, both [B, H, Lq, k], 1 ≤ k ≤
     * ATTN_TOP_LIMIT, both or neither: largest first, of equal scores the lower key first. top_keys
     * is I32: rows of the tensor k; with a block table they count from the begin of the query's own
     * sequence. Where a row keeps fewer keys, the rest is weight 0 and key −1. */
    const attn_tensor *top_weights;
    const attn_tensor *top_keys;

    /* [B, H, Lq, 1]: −Σ p·ln p over the row's weights, in nats, its sink's share among them; 0 in a
     * row without a key. Σ e^(s−m)·(s−m) is kept beside l as the keys pass by: ln l − t/l. */
    const attn_tensor *entropy;

    /* [B, H, Lq, 1]: the row's largest weight, 0 in a row without a key. */
    const attn_tensor *maximum;

    /* [B, H, Lk, 1]: what each key receives, Σ of its weights over the queries query_begin..
     * query_end−1, which are rows of q; by default all. 0 for a key that none of them keeps. Costs
     * a second pass over Q·Kᵀ. */
    const attn_tensor *key_sums;
    int64_t query_begin, query_end; /* default 0, INT64_MAX; cut off at Lq */
} attn_inspection;

/* Nothing wanted. */
ATTN_API void attn_inspection_init(attn_inspection *inspection);

/* Looks into the weights that attn_forward used, from its row statistics, without ever holding more
 * of them than a tile a thread: memory beside the outputs is O(L).
 *   q, k, params  as given to attn_forward
 *   stats         as written by it, in a context of the same ISA
 *
 * The top weights are those of attn_weights bit for bit, and all results are the same for any
 * number of threads and any strides, whatever else is asked for. A row in which a score is NaN or
 * +inf gives NaN weights, entropy and maximum, and which keys it names is not promised; a key that
 * such a row keeps has a sum of NaN.
 *
 * Errors as for attn_weights, and: ATTN_ERROR_ARGUMENT: inspection is NULL or its size unknown, one
 * of top_weights and top_keys without the other, query_begin < 0 or > query_end. ATTN_ERROR_SHAPE:
 * a k out of range, more than INT32_MAX keys with top_keys. ATTN_ERROR_UNSUPPORTED: key_sums of
 * packed sequences with a block table, where a key has no place in the tensors. */
ATTN_API attn_status attn_inspect(attn_context *context, const attn_params *params,
                                  const attn_tensor *q, const attn_tensor *k,
                                  const attn_tensor *stats, const attn_inspection *inspection);

/* attn_forward, and on the same way through the keys what attn_inspect would tell of it: the bits
 * of o and stats are those of attn_forward, and the bits of the inspection those of attn_inspect.
 * stats may be NULL. Errors of both. */
ATTN_API attn_status attn_forward_inspect(attn_context *context, const attn_params *params,
                                          const attn_tensor *q, const attn_tensor *k,
                                          const attn_tensor *v, const attn_tensor *o,
                                          const attn_tensor *stats,
                                          const attn_inspection *inspection);

/* "0.6.0": the version of the library that runs, which may be newer than this header. */
ATTN_API const char *attn_version(void);

#ifdef __cplusplus
}
#endif

#endif
