/* One HTTP request: what it may ask, and what it is told. */
#ifndef ATTN_SERVE_REQUEST_H
#define ATTN_SERVE_REQUEST_H

#include <microhttpd.h>

#include "serve/question.h"

/* What all requests share. */
struct request_rules {
    const char *name; /* that the server was told to listen on */
    uint16_t port;
    const char *page;
    struct question_queue *queue;
};

/* Callbacks of libmicrohttpd; the first one's user is a struct request_rules. */
enum MHD_Result request_handle(void *user, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **request);
void request_end(void *user, struct MHD_Connection *connection, void **request,
                 enum MHD_RequestTerminationCode code);

/* The queue's `answered`: lets the connection go on. */
void request_answered(struct question *question);

#endif
