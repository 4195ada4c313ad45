/* A page over HTTP, for one user's own browser: it knows HTTP and nothing of what it serves. */
#ifndef ATTN_SERVE_SERVER_H
#define ATTN_SERVE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum {
    SERVE_BODY_LIMIT = 1 << 18, /* bytes of a request's body: more is answered with 413 */
    /* At once; more wait. A client that has gone in the middle of a body counts until the timeout:
     * libmicrohttpd looks for its end no sooner. */
    SERVE_CONNECTION_LIMIT = 512,
    SERVE_TIMEOUT = 5 /* seconds without a byte, after which a connection is closed */
};

/* What a question comes to. */
enum serve_outcome {
    SERVE_ANSWERED, /* 200: *answer is JSON */
    SERVE_REFUSED,  /* 400: the question is not as it must be; *error says why */
    SERVE_FAILED    /* 500: *error says why */
};

/* Answers a question, the body of POST /look, with JSON. The body is as it came: that it is JSON,
 * or valid UTF-8, is for the answer to see. Called from one thread at a time. */
typedef enum serve_outcome serve_answer(void *user, const char *body, size_t size,
                                        struct attn_buffer *answer, struct attn_error *error);

struct serve_settings {
    const char *host; /* an address or a name of this machine */
    uint16_t port;    /* 0: any that is free */
    const char *page; /* GET /: HTML, NUL-terminated; must outlive the server */
    serve_answer *answer;
    void *user;
};

struct server;

/* Listens, and answers on threads of its own from here on:
 *
 *   GET /, HEAD /   the page
 *   POST /look      what `answer` makes of the body; an error is JSON too: {"error": "…"}
 *
 * Every request must name the server in its Host header: an address in figures, localhost or
 * `host`, and the port. A page of another site that has its name pointed here, and asks in its own
 * name, gets 403 (DNS rebinding); so does a POST whose Origin is another. Other paths get 404,
 * other methods 405, other bodies than application/json 415; headers that contradict each other 400
 * (two lengths, two hosts, a length and a coding, a coding other than chunked).
 *
 * "cannot listen on 127.0.0.1:80: Permission denied". On failure *server is NULL. */
bool server_start(struct server **server, const struct serve_settings *settings,
                  struct attn_error *error);
uint16_t server_port(const struct server *server);

/* Ends all connections, waits for the answer that is being made; NULL is allowed. */
void server_stop(struct server *server);

#endif
