/* A text to learn from: its training part and, behind it, its held-out part, as token ids. */
#ifndef ATTN_TRAIN_CORPUS_H
#define ATTN_TRAIN_CORPUS_H

#include "text/tokenizer.h"

struct corpus {
    char *text; /* valid UTF-8; NULL after corpus_encode */
    size_t size;
    size_t training_size; /* bytes; the rest is held out */
    uint64_t checksum;    /* of the whole text */
    int32_t *ids;         /* of both parts, one behind the other; NULL before corpus_encode */
    int64_t training_count, held_out_count; /* ids */
};

/* Reads a file ("-" is standard input). The held-out part is the last `held_out` of its bytes,
 * begun at a line's end where there is one near. Refused: a file that is missing, empty, not UTF-8,
 * larger than 16 GiB. */
bool corpus_read(struct corpus *corpus, const char *path, double held_out,
                 struct attn_error *error);

/* The ids of both parts, without what the tokenizer's template adds; special tokens spelled in the
 * text are plain text. Frees the text. */
bool corpus_encode(struct corpus *corpus, const struct tokenizer *tokenizer,
                   struct attn_error *error);
void corpus_release(struct corpus *corpus);

#endif
