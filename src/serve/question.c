#include "serve/question.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct question_queue {
    serve_answer *answer;
    void *user;
    void (*answered)(struct question *question);

    pthread_t thread;
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t changed;
    struct question *first, **last; /* last: where the next one is to be linked */
    bool ending;
};

/* The next question, or NULL when the queue ends. */
static struct question *take(struct question_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->ending)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    struct question *question = queue->ending ? NULL : queue->first;
    if (question) {
        queue->first = question->next;
        if (!queue->first)
            queue->last = &queue->first;
    }
    pthread_mutex_unlock(&queue->mutex);
    return question;
}

static void *answer_all(void *state)
{
    struct question_queue *queue = state;
    for (struct question *question; (question = take(queue)) != NULL;) {
        question->outcome =
            queue->answer(queue->user, question->body.data ? question->body.data : "",
                          question->body.size, &question->answer, &question->error);
        if (question->outcome == SERVE_ANSWERED && question->answer.failed) {
            question->outcome = SERVE_FAILED;
            attn_error_memory(&question->error);
        }
        queue->answered(question);
    }
    return NULL;
}

bool question_queue_create(struct question_queue **queue, serve_answer *answer, void *user,
                           void (*answered)(struct question *question), struct attn_error *error)
{
    *queue = NULL;
    struct question_queue *made = calloc(1, sizeof *made);
    if (!made)
        return attn_error_memory(error);
    made->answer = answer;
    made->user = user;
    made->answered = answered;
    made->last = &made->first;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    const int failed = pthread_create(&made->thread, NULL, answer_all, made);
    if (failed) {
        question_queue_destroy(made);
        return attn_error_set(error, "cannot start a thread: %s", strerror(failed));
    }
    *queue = made;
    return true;
}

bool question_queue_add(struct question_queue *queue, struct question *question)
{
    pthread_mutex_lock(&queue->mutex);
    const bool taken = !queue->ending;
    if (taken) {
        question->next = NULL;
        *queue->last = question;
        queue->last = &question->next;
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return taken;
}

void question_queue_end(struct question_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->ending = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    pthread_join(queue->thread, NULL);
    /* Nobody adds or takes any more. */
    for (struct question *question = queue->first, *next; question; question = next) {
        next = question->next;
        question->outcome = SERVE_FAILED;
        attn_error_set(&question->error, "the server ends");
        queue->answered(question);
    }
    queue->first = NULL;
}

void question_queue_destroy(struct question_queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}
