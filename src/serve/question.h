/* Questions that wait for their answers, which one thread makes after the other. */
#ifndef ATTN_SERVE_QUESTION_H
#define ATTN_SERVE_QUESTION_H

#include "base/buffer.h"
#include "serve/server.h"

/* One question. Whoever asks owns it, and lets it be from question_queue_add until `answered` has
 * been called for it. */
struct question {
    struct attn_buffer body;
    struct attn_buffer answer;
    enum serve_outcome outcome;
    struct attn_error error;
    struct question *next;
    void *user; /* the asker's */
};

struct question_queue;

/* `answered` is called on the queue's thread. On failure *queue is NULL. */
bool question_queue_create(struct question_queue **queue, serve_answer *answer, void *user,
                           void (*answered)(struct question *question), struct attn_error *error);

/* False, with nothing done, once the queue is to end. */
bool question_queue_add(struct question_queue *queue, struct question *question);

/* Waits for the answer that is being made; what waits still is answered with a failure. After it no
 * question is taken. */
void question_queue_end(struct question_queue *queue);
void question_queue_destroy(struct question_queue *queue); /* behind question_queue_end, or NULL */

#endif
