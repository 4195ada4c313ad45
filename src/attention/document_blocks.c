#include "attention/document_blocks.h"

static struct attn_document_range joined(struct attn_document_range a, struct attn_document_range b)
{
    return (struct attn_document_range){
        .low = a.low < b.low ? a.low : b.low,
        .high = a.high > b.high ? a.high : b.high,
    };
}

struct attn_document_range attn_documents_range(const int64_t *documents, int64_t count)
{
    struct attn_document_range range = {documents[0], documents[0]};
    for (int64_t t = 1; t < count; t++)
        range = joined(range, (struct attn_document_range){documents[t], documents[t]});
    return range;
}

const int64_t *attn_documents_of_rows(const struct attn_problem *problem,
                                      const struct attn_sequence *sequence, int64_t first)
{
    return problem->query_documents + sequence->batch * problem->queries + sequence->query_begin +
           first;
}

const int64_t *attn_documents_of_keys(const struct attn_problem *problem,
                                      const struct attn_sequence *sequence, int64_t first)
{
    return problem->key_documents + sequence->batch * problem->keys + sequence->key_begin + first;
}

static int64_t blocks_a_batch(const struct attn_problem *problem)
{
    return problem->keys / ATTN_KEY_BLOCK + (problem->keys % ATTN_KEY_BLOCK != 0);
}

int64_t attn_document_blocks_count(const struct attn_problem *problem)
{
    return problem->key_documents ? problem->batch * blocks_a_batch(problem) : 0;
}

void attn_document_blocks_fill(const struct attn_problem *problem,
                               struct attn_document_range *blocks)
{
    for (int64_t b = 0; b < problem->batch; b++) {
        const int64_t *documents = problem->key_documents + b * problem->keys;
        for (int64_t key = 0; key < problem->keys; key += ATTN_KEY_BLOCK) {
            int64_t left = problem->keys - key;
            *blocks++ = attn_documents_range(documents + key,
                                             left < ATTN_KEY_BLOCK ? left : ATTN_KEY_BLOCK);
        }
    }
}

/* The blocks of the sequence's batch. They are counted from the tensor's first key, so that a
 * sequence may begin within one. */
static const struct attn_document_range *blocks_of(const struct attn_problem *problem,
                                                   const struct attn_sequence *sequence)
{
    return problem->document_blocks + sequence->batch * blocks_a_batch(problem);
}

struct attn_document_range attn_documents_near(const struct attn_problem *problem,
                                               const struct attn_sequence *sequence, int64_t first,
                                               int64_t count)
{
    if (!problem->document_blocks)
        return attn_documents_range(attn_documents_of_keys(problem, sequence, first), count);
    const struct attn_document_range *blocks = blocks_of(problem, sequence);
    int64_t begin = sequence->key_begin + first, last = begin + count - 1;
    struct attn_document_range range = blocks[begin / ATTN_KEY_BLOCK];
    for (int64_t n = begin / ATTN_KEY_BLOCK + 1; n <= last / ATTN_KEY_BLOCK; n++)
        range = joined(range, blocks[n]);
    return range;
}

struct attn_key_span attn_documents_narrow(const struct attn_problem *problem,
                                           const struct attn_sequence *sequence, int64_t first,
                                           int64_t rows, struct attn_key_span span)
{
    if (!problem->document_blocks || span.begin >= span.end)
        return span;
    struct attn_document_range wanted =
        attn_documents_range(attn_documents_of_rows(problem, sequence, first), rows);
    const struct attn_document_range *blocks = blocks_of(problem, sequence);
    int64_t begin = sequence->key_begin + span.begin, end = sequence->key_begin + span.end;
    int64_t n = begin / ATTN_KEY_BLOCK, last = (end - 1) / ATTN_KEY_BLOCK;
    while (n <= last && (blocks[n].high < wanted.low || blocks[n].low > wanted.high))
        n++;
    if (n > last)
        return (struct attn_key_span){span.begin, span.begin};
    while (blocks[last].high < wanted.low || blocks[last].low > wanted.high)
        last--;
    if (begin < n * ATTN_KEY_BLOCK)
        begin = n * ATTN_KEY_BLOCK;
    if (end > (last + 1) * ATTN_KEY_BLOCK)
        end = (last + 1) * ATTN_KEY_BLOCK;
    return (struct attn_key_span){begin - sequence->key_begin, end - sequence->key_begin};
}
