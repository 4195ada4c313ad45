/* Sequences, the spans of keys that rows need, and the bits of what a tile excludes, against the
 * definition of each, key by key. */
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

#include "attention/document_blocks.h"
#include "attention/score_edit.h"
#include "harness/guarded.h"
#include "harness/isa.h"
#include "harness/random.h"

/* What the key_range callback of these tests leaves. */
static void range_of_call(void *user, int64_t sequence, int64_t head, int64_t query,
                          int64_t queries, int64_t *begin, int64_t *end)
{
    const int64_t *limits = user;
    CHECK(*begin == 0 && *end >= 0 && sequence >= 0 && head >= 0 && query >= 0 && queries > 0);
    *begin = limits[0];
    *end = limits[1];
}

static int64_t *random_lengths(struct random_source *source, int64_t count, int64_t low,
                               int64_t high)
{
    int64_t *lengths = guarded_bytes((size_t)count * sizeof *lengths, 8, GUARD_BEHIND);
    for (int64_t i = 0; i < count; i++)
        lengths[i] = random_integer(source, low, high);
    return lengths;
}

/* Numbers of documents in runs. */
static int64_t *random_documents(struct random_source *source, int64_t count)
{
    int64_t *documents = guarded_bytes((size_t)count * sizeof *documents, 8, GUARD_BEHIND);
    int64_t longest = random_integer(source, 1, 200), left = 0, document = 0;
    for (int64_t i = 0; i < count; i++, left--) {
        if (left == 0) {
            left = random_integer(source, 1, longest);
            document =
                random_integer(source, 0, 7) == 0 ? random_integer(source, -3, 9) : document + 1;
        }
        documents[i] = document;
    }
    return documents;
}

/* Begins of `sequences` sequences within `length` rows. */
static int64_t *random_starts(struct random_source *source, int64_t sequences, int64_t length)
{
    int64_t *starts = guarded_bytes((size_t)(sequences + 1) * sizeof *starts, 8, GUARD_BEHIND);
    starts[0] = 0;
    for (int64_t s = 1; s <= sequences; s++)
        starts[s] = starts[s - 1] +
                    random_integer(source, 0, (length - starts[s - 1]) * 2 / (sequences - s + 2));
    return starts;
}

static void make_positions(struct random_source *source, struct attn_problem *problem)
{
    problem->alignment = (attn_alignment)random_integer(source, 0, 2);
    problem->offset = random_integer(source, -100, 300);
    problem->reach_left = ATTN_WINDOW_OPEN;
    problem->reach_right = ATTN_WINDOW_OPEN;
    switch (random_integer(source, 0, 3)) {
    case 0:
        problem->reach_left = random_integer(source, -20, 200);
        problem->reach_right = random_integer(source, -20, 200);
        break;
    case 1:
        problem->reach_right = 0;
        break;
    case 2:
        problem->reach_left = random_integer(source, 0, 30);
        problem->reach_right = 0;
        break;
    default:
        break;
    }
    if (random_integer(source, 0, 9) == 0)
        problem->offset = random_integer(source, 0, 1) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
    if (random_integer(source, 0, 9) == 0)
        problem->reach_left =
            random_integer(source, 0, 1) ? ATTN_POSITION_LIMIT : -ATTN_POSITION_LIMIT;
}

static attn_tensor random_keep(struct random_source *source, const struct attn_problem *problem)
{
    int64_t shape[4] = {problem->batch, problem->heads, problem->queries, problem->keys};
    for (int axis = 0; axis < 4; axis++)
        if (random_integer(source, 0, 2) == 0)
            shape[axis] = 1;
    int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
    unsigned char *data = guarded_bytes((size_t)count, 1, GUARD_BEHIND);
    int64_t one_in = random_integer(source, 1, 60);
    for (int64_t i = 0; i < count; i++)
        data[i] = (unsigned char)(random_integer(source, 1, one_in) == 1
                                      ? 0
                                      : random_integer(source, 1, 255));
    attn_tensor keep = attn_tensor_packed(data, ATTN_BOOL, shape[0], shape[1], shape[2], shape[3]);
    if (random_integer(source, 0, 3) == 0) { /* keys side by side across the rows */
        keep.stride[3] = shape[2];
        keep.stride[2] = 1;
    }
    for (int axis = 0; axis < 4; axis++)
        if (shape[axis] == 1)
            keep.stride[axis] = 0;
    return keep;
}

static struct attn_problem random_problem(struct random_source *source, int64_t limits[2])
{
    struct attn_problem problem = {
        .batch = random_integer(source, 1, 2),
        .heads = random_integer(source, 1, 2),
        .queries = random_integer(source, 1, 150),
        .keys = random_integer(source, 1, 500),
        .callback_user = limits,
    };
    problem.sequences = problem.batch;
    make_positions(source, &problem);
    if (random_integer(source, 0, 2) == 0) {
        problem.batch = 1;
        problem.sequences = random_integer(source, 1, 5);
        problem.query_starts = random_starts(source, problem.sequences, problem.queries);
        problem.key_starts = random_starts(source, problem.sequences, problem.keys);
    }
    if (random_integer(source, 0, 2) == 0) {
        int64_t *lengths = random_lengths(source, problem.sequences, 0, problem.keys);
        for (int64_t s = 0; problem.key_starts && s < problem.sequences; s++) {
            int64_t most = problem.key_starts[s + 1] - problem.key_starts[s];
            lengths[s] = lengths[s] < most ? lengths[s] : most;
        }
        problem.key_lengths = lengths;
    }
    if (random_integer(source, 0, 2) == 0)
        problem.prefix_lengths = random_lengths(source, problem.sequences, 0, problem.keys + 20);
    if (random_integer(source, 0, 2) == 0) {
        problem.query_documents = random_documents(source, problem.batch * problem.queries);
        problem.key_documents = random_documents(source, problem.batch * problem.keys);
    }
    if (random_integer(source, 0, 2) == 0) {
        problem.has_keep = true;
        problem.keep = random_keep(source, &problem);
    }
    if (random_integer(source, 0, 4) == 0) {
        problem.key_range = range_of_call;
        limits[0] = random_integer(source, -10, problem.keys);
        limits[1] = random_integer(source, -10, problem.keys + 10);
    }
    return problem;
}

/* The definition, but for lengths, in the positions of the sequence. */
static bool keeps_place(const struct attn_problem *problem, const struct attn_sequence *sequence,
                        int64_t i, int64_t j)
{
    const int64_t *limits = problem->callback_user;
    if (problem->key_range && (j < limits[0] || j >= limits[1]))
        return false;
    if (problem->prefix_lengths && j < problem->prefix_lengths[sequence->index])
        return true;
    int64_t position = i + sequence->offset;
    if (problem->reach_left != ATTN_WINDOW_OPEN && j < position - problem->reach_left)
        return false;
    return problem->reach_right == ATTN_WINDOW_OPEN || j <= position + problem->reach_right;
}

static bool keeps(const struct attn_problem *problem, const struct attn_sequence *sequence,
                  int64_t head, int64_t i, int64_t j)
{
    int64_t row = sequence->query_begin + i, column = sequence->key_begin + j;
    if (j >= sequence->keys || !keeps_place(problem, sequence, i, j))
        return false;
    if (problem->query_documents &&
        problem->query_documents[sequence->batch * problem->queries + row] !=
            problem->key_documents[sequence->batch * problem->keys + column])
        return false;
    return !problem->has_keep || *(const unsigned char *)attn_address(
                                     &problem->keep, 1, sequence->batch, head, row, column) != 0;
}

static void check_sequence(const struct attn_problem *problem, const struct attn_sequence *sequence,
                           int64_t s)
{
    bool packed = problem->query_starts != NULL;
    int64_t queries =
        packed ? problem->query_starts[s + 1] - problem->query_starts[s] : problem->queries;
    int64_t keys = packed ? problem->key_starts[s + 1] - problem->key_starts[s] : problem->keys;
    int64_t length = problem->key_lengths ? problem->key_lengths[s] : keys;
    const int64_t offsets[] = {0, keys - queries, problem->offset};
    CHECK_EQUAL(sequence->index, s);
    CHECK_EQUAL(sequence->batch, packed ? 0 : s);
    CHECK_EQUAL(sequence->queries, queries);
    CHECK_EQUAL(sequence->keys, length);
    CHECK_EQUAL(sequence->query_begin, packed ? problem->query_starts[s] : 0);
    CHECK_EQUAL(sequence->key_begin, packed ? problem->key_starts[s] : 0);
    CHECK_EQUAL(sequence->offset, offsets[problem->alignment]);
    CHECK(sequence->prefix <= length);
}

/* The two spans hold every key that a row keeps, and, but for documents and keep, begin and end
 * with such keys. */
static void check_spans(const struct attn_problem *problem, const struct attn_sequence *sequence,
                        int64_t head, int64_t first, int64_t rows)
{
    struct attn_key_spans spans = attn_keys_of_rows(problem, sequence, head, first, rows);
    CHECK(0 <= spans.prefix.begin && spans.prefix.begin <= spans.prefix.end);
    CHECK(spans.prefix.end <= spans.rest.begin && spans.rest.begin <= spans.rest.end);
    CHECK(spans.rest.end <= sequence->keys);
    int64_t wanted = 0;
    for (int64_t j = 0; j < sequence->keys; j++) {
        bool inside = (j >= spans.prefix.begin && j < spans.prefix.end) ||
                      (j >= spans.rest.begin && j < spans.rest.end);
        bool kept = false, placed = false;
        for (int64_t i = first; i < first + rows; i++) {
            kept |= keeps(problem, sequence, head, i, j);
            placed |= keeps_place(problem, sequence, i, j);
        }
        CHECK(!kept || inside);
        CHECK(!inside || placed);
        CHECK(problem->document_blocks || !placed || inside);
        wanted += inside;
    }
    CHECK_EQUAL(wanted, spans.prefix.end - spans.prefix.begin + spans.rest.end - spans.rest.begin);

    for (int64_t begin = 0; begin < sequence->keys; begin += ATTN_KEY_BLOCK) {
        struct attn_key_span part = attn_keys_within(&spans, begin, begin + ATTN_KEY_BLOCK);
        int64_t low = -1, high = -1;
        for (int64_t j = begin; j < begin + ATTN_KEY_BLOCK; j++)
            if ((j >= spans.prefix.begin && j < spans.prefix.end) ||
                (j >= spans.rest.begin && j < spans.rest.end)) {
                low = low < 0 ? j : low;
                high = j + 1;
            }
        if (low < 0) {
            CHECK(part.begin == part.end);
            continue;
        }
        CHECK_EQUAL(part.begin, low - low % ATTN_KEY_STEP);
        CHECK_EQUAL(part.end, high);
    }
}

static void check_tile(const struct attn_kernels *kernels, const struct attn_problem *problem,
                       const struct attn_tile *tile)
{
    struct attn_exclusions exclusions;
    memset(&exclusions, 0x5a, sizeof exclusions);
    attn_tile_exclusions(kernels, problem, tile, &exclusions);
    int64_t kept = 0, wrong = 0;
    for (int64_t n = 0; n < tile->lanes; n++)
        for (int64_t t = 0; t < tile->keys; t++) {
            bool right = n < tile->rows &&
                         keeps(problem, tile->sequence, tile->head, tile->query + n, tile->key + t);
            bool excluded = exclusions.words[t / 32 * tile->lanes + n] >> t % 32 & 1;
            kept += right;
            wrong += right == excluded;
        }
    enum attn_exclusion kind = kept == 0                         ? ATTN_EXCLUDES_ALL
                               : kept == tile->rows * tile->keys ? ATTN_EXCLUDES_NONE
                                                                 : ATTN_EXCLUDES_SOME;
    CHECK_EQUAL(exclusions.kind, kind);
    if (exclusions.kind == ATTN_EXCLUDES_SOME)
        CHECK_EQUAL(wrong, 0);
}

static void check_random(const struct attn_kernels *kernels, uint64_t seed)
{
    struct random_source source = {seed};
    int64_t limits[2];
    struct attn_problem problem = random_problem(&source, limits);
    int64_t blocks = attn_document_blocks_count(&problem);
    struct attn_document_range *ranges =
        guarded_bytes((size_t)blocks * sizeof *ranges, 8, GUARD_BEHIND);
    if (problem.key_documents && random_integer(&source, 0, 1)) {
        attn_document_blocks_fill(&problem, ranges);
        problem.document_blocks = ranges;
    }

    test_context("seed %llu", (unsigned long long)seed);
    for (int64_t s = 0; s < problem.sequences; s++) {
        struct attn_sequence sequence = attn_sequence_at(&problem, s);
        check_sequence(&problem, &sequence, s);
        for (int round = 0; round < 4 && sequence.queries > 0; round++) {
            int lanes = kernels->vector_lanes * (int)random_integer(&source, 1, 2);
            struct attn_tile tile = {.sequence = &sequence, .lanes = lanes};
            tile.head = random_integer(&source, 0, problem.heads - 1);
            tile.query = random_integer(&source, 0, sequence.queries - 1);
            int64_t left = sequence.queries - tile.query;
            tile.rows = random_integer(&source, 1, left < lanes ? left : lanes);
            check_spans(&problem, &sequence, tile.head, tile.query, tile.rows);
            if (sequence.keys == 0)
                continue;
            tile.key = random_integer(&source, 0, sequence.keys - 1);
            left = sequence.keys - tile.key;
            tile.keys = random_integer(&source, 1, left < ATTN_KEY_BLOCK ? left : ATTN_KEY_BLOCK);
            check_tile(kernels, &problem, &tile);
        }
    }
    guarded_release_all();
}

static void random_problems(attn_isa isa)
{
    uint64_t last = test_is_reduced() ? 300 : 4000;
    for (uint64_t seed = 1; seed <= last; seed++)
        check_random(attn_kernels_for(isa), seed);
}

/* Positions as far apart as they may be. */
static void far_positions(const void *argument)
{
    (void)argument;
    const int64_t far = ATTN_POSITION_LIMIT;
    const int64_t sides[] = {far, -far, 0, ATTN_WINDOW_OPEN};
    for (size_t left = 0; left < COUNT(sides); left++)
        for (size_t right = 0; right < COUNT(sides); right++)
            for (int64_t offset = -far; offset <= far; offset += far) {
                struct attn_problem problem = {
                    .batch = 1, .sequences = 1, .heads = 1, .queries = INT64_MAX, .keys = 300};
                problem.alignment = ATTN_ALIGN_OFFSET;
                problem.offset = offset;
                problem.reach_left = sides[left];
                problem.reach_right = sides[right];
                struct attn_sequence sequence = attn_sequence_at(&problem, 0);
                test_context("sides %zu and %zu, offset %lld", left, right, (long long)offset);
                check_spans(&problem, &sequence, 0, 0, 1);
                check_spans(&problem, &sequence, 0, 17, 16);
                /* Beyond what a sum can hold. */
                struct attn_key_spans spans =
                    attn_keys_of_rows(&problem, &sequence, 0, INT64_MAX - 16, 16);
                CHECK_EQUAL(spans.rest.end - spans.rest.begin,
                            sides[left] == ATTN_WINDOW_OPEN ? 300 : 0);
            }
}

/* With a block table the keys that count are those of key_lengths. */
static void paged_sequences(const void *argument)
{
    (void)argument;
    const int64_t lengths[] = {5, 40}, starts[] = {0, 3, 4};
    const int32_t table[4] = {0};
    struct attn_problem problem = {.batch = 1,
                                   .sequences = 2,
                                   .queries = 4,
                                   .keys = 64,
                                   .alignment = ATTN_ALIGN_BOTTOM_RIGHT,
                                   .reach_left = ATTN_WINDOW_OPEN,
                                   .reach_right = 0,
                                   .query_starts = starts,
                                   .key_lengths = lengths,
                                   .block_table = table,
                                   .block_table_width = 2,
                                   .page_length = 32};
    struct attn_sequence sequence = attn_sequence_at(&problem, 1);
    CHECK_EQUAL(sequence.batch, 0);
    CHECK_EQUAL(sequence.query_begin, 3);
    CHECK_EQUAL(sequence.key_begin, 0);
    CHECK_EQUAL(sequence.queries, 1);
    CHECK_EQUAL(sequence.keys, 40);
    CHECK_EQUAL(sequence.offset, 39);
    CHECK_EQUAL(attn_keys_of_rows(&problem, &sequence, 0, 0, 1).rest.end, 40);
    sequence = attn_sequence_at(&problem, 0);
    CHECK_EQUAL(sequence.offset, 2);

    /* The rows behind the last sequence have no key. */
    problem.queries = 9;
    sequence = attn_sequence_at(&problem, 2);
    CHECK_EQUAL(sequence.query_begin, 4);
    CHECK_EQUAL(sequence.queries, 5);
    CHECK_EQUAL(sequence.keys, 0);
}

/* Long runs: all but the blocks of the row's own document are left out before a key is looked at.
 */
static void document_blocks_narrow(const void *argument)
{
    (void)argument;
    enum { KEYS = 960, RUN = 100 };
    int64_t documents[KEYS];
    for (int64_t j = 0; j < KEYS; j++)
        documents[j] = j / RUN;
    struct attn_document_range blocks[KEYS / ATTN_KEY_BLOCK];
    struct attn_problem problem = {.batch = 1,
                                   .sequences = 1,
                                   .queries = KEYS,
                                   .keys = KEYS,
                                   .reach_left = ATTN_WINDOW_OPEN,
                                   .reach_right = ATTN_WINDOW_OPEN,
                                   .query_documents = documents,
                                   .key_documents = documents};
    CHECK_EQUAL(attn_document_blocks_count(&problem), COUNT(blocks));
    attn_document_blocks_fill(&problem, blocks);
    problem.document_blocks = blocks;
    struct attn_sequence sequence = attn_sequence_at(&problem, 0);
    for (int64_t i = 0; i + 16 <= KEYS; i += 16) {
        struct attn_key_spans spans = attn_keys_of_rows(&problem, &sequence, 0, i, 16);
        int64_t begin = i / RUN * RUN, end = (i + 15) / RUN * RUN + RUN;
        test_context("row %d", (int)i);
        CHECK(spans.rest.begin > begin - ATTN_KEY_BLOCK && spans.rest.begin <= begin);
        CHECK(spans.rest.end < end + ATTN_KEY_BLOCK && spans.rest.end >= (end < KEYS ? end : KEYS));
    }
}

int main(void)
{
    isa_each("random problems", random_problems);
    test_run(far_positions, NULL, "positions as far apart as they may be");
    test_run(paged_sequences, NULL, "sequences of a block table");
    test_run(document_blocks_narrow, NULL, "blocks of other documents are left out");
    return test_finish();
}
