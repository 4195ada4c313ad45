#include "attention/sequence.h"

#include "attention/document_blocks.h"
#include "attention/window.h"

struct attn_sequence attn_sequence_at(const struct attn_problem *problem, int64_t index)
{
    struct attn_sequence sequence = {
        .index = index,
        .batch = index,
        .queries = problem->queries,
        .keys = problem->keys,
    };
    if (problem->query_starts && index == problem->sequences) {
        sequence.batch = 0;
        sequence.query_begin = problem->query_starts[index];
        sequence.queries = problem->queries - sequence.query_begin;
        sequence.keys = 0;
        return sequence;
    }
    if (problem->query_starts) {
        sequence.batch = 0;
        sequence.query_begin = problem->query_starts[index];
        sequence.queries = problem->query_starts[index + 1] - sequence.query_begin;
    }
    if (problem->key_starts) {
        sequence.key_begin = problem->key_starts[index];
        sequence.keys = problem->key_starts[index + 1] - sequence.key_begin;
    }

    /* A block table has room for more keys than there are; a tensor's keys are all there. */
    int64_t length = problem->key_lengths ? problem->key_lengths[index] : sequence.keys;
    int64_t aligned = problem->block_table ? length : sequence.keys;
    if (problem->alignment == ATTN_ALIGN_BOTTOM_RIGHT)
        sequence.offset = aligned - sequence.queries;
    else if (problem->alignment == ATTN_ALIGN_OFFSET)
        sequence.offset = problem->offset;
    sequence.keys = length;

    if (problem->prefix_lengths) {
        int64_t prefix = problem->prefix_lengths[index];
        sequence.prefix = prefix < length ? prefix : length;
    }
    return sequence;
}

int64_t attn_last_start(const int64_t *starts, int64_t count, int64_t place)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (starts[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t attn_sequence_of_row(const struct attn_problem *problem, int64_t batch, int64_t row)
{
    if (!problem->query_starts)
        return batch;
    /* One more than there are sequences: where the last one ends, the rows of none begin. */
    return attn_last_start(problem->query_starts, problem->sequences + 1, row);
}

/* What two spans have in common. */
static struct attn_key_span common(struct attn_key_span a, struct attn_key_span b)
{
    struct attn_key_span both = {
        .begin = a.begin > b.begin ? a.begin : b.begin,
        .end = a.end < b.end ? a.end : b.end,
    };
    if (both.end < both.begin)
        both.end = both.begin;
    return both;
}

struct attn_key_span attn_span_join(struct attn_key_span a, struct attn_key_span b)
{
    if (attn_span_is_empty(a) || attn_span_is_empty(b))
        return attn_span_is_empty(a) ? b : a;
    return (struct attn_key_span){a.begin < b.begin ? a.begin : b.begin,
                                  a.end > b.end ? a.end : b.end};
}

struct attn_key_spans attn_keys_of_rows(const struct attn_problem *problem,
                                        const struct attn_sequence *sequence, int64_t head,
                                        int64_t first, int64_t rows)
{
    struct attn_key_spans spans = {{0, 0}, {0, 0}};
    if (rows <= 0 || sequence->keys <= 0)
        return spans;
    /* The first row reaches farthest left, the last one farthest right. */
    spans.prefix.end = sequence->prefix;
    spans.rest.begin = attn_window_begin(problem, sequence, first);
    spans.rest.end = attn_window_end(problem, sequence, first + rows - 1);
    spans.rest = common(spans.rest, (struct attn_key_span){sequence->prefix, sequence->keys});

    if (problem->key_range) {
        struct attn_key_span called = attn_called_range(problem, sequence, head, first, rows);
        spans.prefix = common(spans.prefix, called);
        spans.rest = common(spans.rest, called);
    }
    if (problem->query_documents) {
        spans.prefix = attn_documents_narrow(problem, sequence, first, rows, spans.prefix);
        spans.rest = attn_documents_narrow(problem, sequence, first, rows, spans.rest);
    }
    return spans;
}

struct attn_key_span attn_keys_within(const struct attn_key_spans *spans, int64_t begin,
                                      int64_t end)
{
    struct attn_key_span part = {begin, end};
    struct attn_key_span prefix = common(spans->prefix, part), rest = common(spans->rest, part);
    if (prefix.begin == prefix.end)
        part = rest;
    else if (rest.begin == rest.end)
        part = prefix;
    else
        part = (struct attn_key_span){prefix.begin, rest.end};
    if (part.begin < part.end)
        part.begin -= part.begin % ATTN_KEY_STEP;
    return part;
}
