/* How often a head's strongest link is a dependency: the table of K. Clark et al., "What Does BERT
 * Look At? An Analysis of BERT's Attention" (2019), section 4.2, beside a baseline without a
 * model. */
#ifndef ATTN_PROBE_DEPENDENCY_SCORES_H
#define ATTN_PROBE_DEPENDENCY_SCORES_H

#include <stdint.h>

#include "probe/treebank.h"

/* Which way a link is read to find the word that word i depends on, from A, the attention among the
 * words of a sentence. The word itself is left out, and a weight of 0 is no link: in a causal model
 * DEPENDENCY_TO_HEAD finds heads before the word only, DEPENDENCY_TO_DEPENDENT those behind it. */
enum dependency_direction {
    DEPENDENCY_TO_HEAD,      /* argmax_j A_ij: the word looks at its head */
    DEPENDENCY_TO_DEPENDENT, /* argmax_j A_ji: the head looks at the word */
    DEPENDENCY_DIRECTIONS
};

/* The baseline's offsets are −DEPENDENCY_REACH..DEPENDENCY_REACH. */
enum { DEPENDENCY_REACH = 10 };

enum { NO_LINK = -1 };

/* The strongest links of one head in one sentence; of equal ones the lower word. */
struct dependency_links {
    size_t words;
    int32_t *found[DEPENDENCY_DIRECTIONS]; /* [words] each, from 0, or NO_LINK */
    float *strongest;                      /* [words]: the largest A_ji so far */
};

/* Room for sentences of up to `words` words. Release with dependency_links_release. */
bool dependency_links_create(struct dependency_links *links, size_t words,
                             struct attn_error *error);
void dependency_links_release(struct dependency_links *links);

/* A sentence of so many words begins; its rows A[i] come in any order. */
void dependency_links_begin(struct dependency_links *links, size_t words);
void dependency_links_add(struct dependency_links *links, size_t i, const float *weights);

/* Words that depend by one relation; those that depend on the root are in none. */
struct dependency_relation {
    const char *name; /* the treebank's; NULL: all relations together */
    size_t words;
    int offset; /* of the best baseline: word i's head is i + offset, cut to the sentence's */
    size_t offset_correct; /* first and last; of equal ones the shortest, then the negative one */
    size_t *correct;       /* [layers][heads][DEPENDENCY_DIRECTIONS] words whose head is found */
};

struct dependency_scores {
    int64_t layers, heads;
    struct dependency_relation *relations; /* all; then by falling words, of equal ones by name */
    size_t relation_count;
    int32_t *relation_of; /* of each of the treebank's words: its relation, 0 for the root's */
    size_t *correct;      /* what the relations point into */
};

/* Counts relations and finds the baseline; of heads there is nothing yet. The treebank must outlive
 * the scores. Refuses one without a dependency, and one of more than 1,000 relations. Release with
 * dependency_scores_release; on failure nothing is held. */
bool dependency_scores_create(struct dependency_scores *scores, const struct treebank *treebank,
                              int64_t layers, int64_t heads, struct attn_error *error);
void dependency_scores_release(struct dependency_scores *scores);

/* Counts what one head found in one of the treebank's sentences. */
void dependency_scores_add(struct dependency_scores *scores, const struct treebank *treebank,
                           const struct treebank_sentence *sentence, int64_t layer, int64_t head,
                           const struct dependency_links *links);

/* The head and direction that found most of a relation, among layers first..last: its place in
 * `correct`; of equal ones the first. */
size_t dependency_best(const struct dependency_scores *scores,
                       const struct dependency_relation *relation, int64_t first, int64_t last);

#endif
