#include "serve/server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/listen.h"
#include "serve/request.h"

/* Bytes of a request's line and headers; libmicrohttpd answers longer ones with 414 or 431. */
enum { HEADER_LIMIT = 32 * 1024 };

struct server {
    struct MHD_Daemon *daemon;
    struct request_rules rules;
    char *name;
};

static bool start_daemon(struct server *server, int socket, struct attn_error *error)
{
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, socket, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)request_end, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, SERVE_CONNECTION_LIMIT, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, SERVE_TIMEOUT, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADER_LIMIT, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    server->daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        request_handle, &server->rules, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (server->daemon)
        return true;
    close(socket);
    return attn_error_set(error, "cannot start the HTTP server");
}

bool server_start(struct server **server, const struct serve_settings *settings,
                  struct attn_error *error)
{
    *server = NULL;
    int socket = -1;
    uint16_t port = settings->port;
    struct server *made = calloc(1, sizeof *made);
    char *name = strdup(settings->host);
    if (!made || !name) {
        free(made);
        free(name);
        return attn_error_memory(error);
    }
    *made = (struct server){.name = name, .rules = {.name = name, .page = settings->page}};
    if (!listen_open(settings->host, &port, &socket, error)) {
        server_stop(made);
        return false;
    }
    made->rules.port = port;
    if (!question_queue_create(&made->rules.queue, settings->answer, settings->user,
                               request_answered, error)) {
        close(socket);
        server_stop(made);
        return false;
    }
    if (!start_daemon(made, socket, error)) {
        server_stop(made);
        return false;
    }
    *server = made;
    return true;
}

uint16_t server_port(const struct server *server)
{
    return server->rules.port;
}

/* The queue first: libmicrohttpd may not be stopped while a connection sleeps. */
void server_stop(struct server *server)
{
    if (!server)
        return;
    if (server->rules.queue)
        question_queue_end(server->rules.queue);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    question_queue_destroy(server->rules.queue);
    free(server->name);
    free(server);
}
