#include "serve/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "serve/host_check.h"

/* Seconds in which a body must have come: whoever sends a byte now and then does not stay. */
static const double body_seconds = 60;

/* A POST that passed the checks; all other requests are answered at once and have none. */
struct request {
    struct question question;
    struct MHD_Connection *connection;
    double began;
    bool is_asked; /* its body has come, and the queue has it or had it */
};

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type,
                             const char *content, size_t size, enum MHD_ResponseMemoryMode mode)
{
    /* libmicrohttpd does not write to what it is given. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)content, mode);
    if (!response)
        return MHD_NO;
    const char *const headers[][2] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
    };
    bool added = true;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        added = added && MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        added = added && MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                                 "GET, HEAD, POST") == MHD_YES;
    const enum MHD_Result queued =
        added ? MHD_queue_response(connection, status, response) : MHD_NO;
    MHD_destroy_response(response);
    return queued;
}

static const char json_type[] = "application/json";

/* {"error": message} */
static enum MHD_Result reply_error(struct MHD_Connection *connection, unsigned status,
                                   const char *message)
{
    struct attn_buffer text = {0};
    attn_buffer_add_text(&text, "{\"error\": ");
    attn_buffer_add_json_string(&text, message, strlen(message));
    attn_buffer_add_text(&text, "}\n");
    const enum MHD_Result sent = text.failed ? MHD_NO
                                             : reply(connection, status, json_type, text.data,
                                                     text.size, MHD_RESPMEM_MUST_COPY);
    attn_buffer_release(&text);
    return sent;
}

static bool is_json(const char *type)
{
    const size_t size = sizeof json_type - 1;
    return type && strncasecmp(type, json_type, size) == 0 && strchr("; \t", type[size]) != NULL;
}

/* What a request's headers say of where it ends and whom it means. */
struct framing {
    int hosts, lengths, codings;
    bool is_strange; /* a coding other than chunked, of which libmicrohttpd knows no end */
};

static enum MHD_Result note_header(void *user, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    (void)kind;
    struct framing *framing = user;
    framing->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    framing->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->codings++;
        framing->is_strange |= !value || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* A request that ends in one place, whoever reads it (RFC 9112, sections 3.2 and 6.3):
 * libmicrohttpd takes the first of what contradicts itself. */
static bool framing_check(struct MHD_Connection *connection)
{
    struct framing framing = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, note_header, &framing);
    return framing.hosts <= 1 && framing.lengths + framing.codings <= 1 && !framing.is_strange;
}

/* What is wrong with a POST before its body is read: the status, or 0. */
static unsigned refusal_of(struct MHD_Connection *connection, const char **message)
{
    const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!origin_check(header_of(connection, MHD_HTTP_HEADER_ORIGIN),
                      header_of(connection, MHD_HTTP_HEADER_HOST))) {
        *message = "another site's page asks";
        return MHD_HTTP_FORBIDDEN;
    }
    if (!is_json(header_of(connection, MHD_HTTP_HEADER_CONTENT_TYPE))) {
        *message = "the body must be application/json";
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    /* libmicrohttpd has checked that it is a number. */
    if (length && strtoull(length, NULL, 10) > SERVE_BODY_LIMIT) {
        *message = "the text is too long for one request";
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    return 0;
}

static enum MHD_Result begin_question(struct MHD_Connection *connection, void **state)
{
    const char *message;
    const unsigned refused = refusal_of(connection, &message);
    if (refused)
        return reply_error(connection, refused, message);
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return MHD_NO;
    request->connection = connection;
    request->began = attn_clock();
    request->question.user = request;
    *state = request;
    return MHD_YES;
}

/* The first call for a request: all but a good POST is answered here. */
static enum MHD_Result begin(const struct request_rules *rules, struct MHD_Connection *connection,
                             const char *url, const char *method, void **state)
{
    const bool is_get =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    const bool is_post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    const bool is_page = strcmp(url, "/") == 0, is_look = strcmp(url, "/look") == 0;
    if (!framing_check(connection))
        return reply_error(connection, MHD_HTTP_BAD_REQUEST,
                           "the headers name two hosts, or two ends of the body");
    if (!host_check(header_of(connection, MHD_HTTP_HEADER_HOST), rules->name, rules->port))
        return reply_error(connection, MHD_HTTP_FORBIDDEN,
                           "the Host header does not name this server");
    if (!is_page && !is_look)
        return reply_error(connection, MHD_HTTP_NOT_FOUND, "there are / and /look");
    if (is_page && is_get)
        return reply(connection, MHD_HTTP_OK, "text/html; charset=utf-8", rules->page,
                     strlen(rules->page), MHD_RESPMEM_PERSISTENT);
    if (is_look && is_post)
        return begin_question(connection, state);
    return reply_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                       "GET / and POST /look are answered");
}

/* A part of the body. MHD_NO closes the connection: there is no answer in the middle of a body. */
static enum MHD_Result take_body(struct request *request, const char *upload, size_t *size)
{
    struct attn_buffer *body = &request->question.body;
    if (*size > SERVE_BODY_LIMIT - body->size || attn_clock() - request->began > body_seconds)
        return MHD_NO;
    attn_buffer_add(body, upload, *size);
    *size = 0;
    return body->failed ? MHD_NO : MHD_YES;
}

/* The connection sleeps until the answer is made, so that others are served meanwhile. */
static enum MHD_Result ask(const struct request_rules *rules, struct request *request)
{
    request->is_asked = true;
    MHD_suspend_connection(request->connection);
    if (!question_queue_add(rules->queue, &request->question)) {
        request->question.outcome = SERVE_FAILED;
        attn_error_set(&request->question.error, "the server ends");
        request_answered(&request->question);
    }
    return MHD_YES;
}

static enum MHD_Result tell(struct request *request)
{
    struct question *question = &request->question;
    switch (question->outcome) {
    case SERVE_ANSWERED:
        return reply(request->connection, MHD_HTTP_OK, json_type, question->answer.data,
                     question->answer.size, MHD_RESPMEM_MUST_COPY);
    case SERVE_REFUSED:
        return reply_error(request->connection, MHD_HTTP_BAD_REQUEST, question->error.message);
    case SERVE_FAILED:
        break;
    }
    return reply_error(request->connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                       question->error.message);
}

enum MHD_Result request_handle(void *user, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **state)
{
    (void)version;
    const struct request_rules *rules = user;
    struct request *request = *state;
    if (!request)
        return begin(rules, connection, url, method, state);
    if (*upload_size > 0)
        return take_body(request, upload, upload_size);
    return request->is_asked ? tell(request) : ask(rules, request);
}

void request_answered(struct question *question)
{
    const struct request *request = question->user;
    MHD_resume_connection(request->connection);
}

void request_end(void *user, struct MHD_Connection *connection, void **state,
                 enum MHD_RequestTerminationCode code)
{
    (void)user, (void)connection, (void)code;
    struct request *request = *state;
    if (!request)
        return;
    attn_buffer_release(&request->question.body);
    attn_buffer_release(&request->question.answer);
    free(request);
    *state = NULL;
}
