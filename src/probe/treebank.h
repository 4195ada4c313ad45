/* Sentences with their dependencies: CoNLL-U (universaldependencies.org/format.html). */
#ifndef ATTN_PROBE_TREEBANK_H
#define ATTN_PROBE_TREEBANK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* A syntactic word. Lines of several words in one (1-2) and empty nodes (8.1) are left out. */
struct treebank_word {
    const char *form;     /* bytes as the file has them: whoever encodes them checks the UTF-8 */
    const char *relation; /* without its subtype: "nsubj" of "nsubj:pass"; visible ASCII */
    size_t head;          /* the word that it depends on, from 1; 0: the root */
};

struct treebank_sentence {
    size_t first, count; /* of treebank.words; count ≥ 1 */
    size_t line;         /* of its first word in the file, from 1 */
};

struct treebank {
    struct treebank_sentence *sentences;
    size_t sentence_count;
    struct treebank_word *words;
    size_t word_count;
    char *content; /* what the strings point into */
};

/* A file of at most 256 MiB, or standard input for "-". Lines end with LF or CRLF, the last one
 * with or without; comments stand before a sentence's words. Every size and number is checked, and
 * that heads are words of their sentence; that they make a tree is not. What is not CoNLL-U is
 * refused with its line: "FILE: line 7: …". Release with treebank_release; on failure nothing is
 * held. */
bool treebank_read(struct treebank *treebank, const char *path, struct attn_error *error);
void treebank_release(struct treebank *treebank);

/* The text that a model reads of a sentence: its forms, joined by one space each, appended. */
void treebank_add_text(const struct treebank *treebank, const struct treebank_sentence *sentence,
                       struct attn_buffer *text);

#endif
