/* attn serve: look at texts in a browser. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "draw/attention_map.h"
#include "options.h"
#include "output.h"
#include "serve/server.h"
#include "serve_look.h"
#include "session.h"
#include "verb.h"

enum { OPTION_HOST = OPTION_OWN, OPTION_PORT };
enum { PORT_DEFAULT = 8080 };

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_HELP,
    {"host", required_argument, NULL, OPTION_HOST},
    {"port", required_argument, NULL, OPTION_PORT},
    OPTION_ENTRY_END,
};

struct serve_options {
    struct shared_options shared;
    const char *host;
    uint16_t port;
};

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct serve_options *options = user;
    int64_t port = 0;
    switch (option) {
    case OPTION_HOST:
        if (!value[0])
            return attn_error_set(error, "--host is empty, but must be an address or a name");
        options->host = value;
        return input_check_utf8("--host", value, strlen(value), error);
    case OPTION_PORT:
        if (!options_integer("--port", value, 0, UINT16_MAX, &port, error))
            return false;
        options->port = (uint16_t)port;
        break;
    }
    return true;
}

/* An address of IPv6 stands in brackets in a URL. */
static bool print_url(const char *host, uint16_t port, struct attn_error *error)
{
    struct attn_buffer url = {0};
    const bool in_brackets = strchr(host, ':') != NULL;
    attn_buffer_format(&url, "http://%s%s%s:%u/\n", in_brackets ? "[" : "", host,
                       in_brackets ? "]" : "", (unsigned)port);
    const bool printed = output_write(&url, error);
    attn_buffer_release(&url);
    return printed;
}

/* Serves until a signal ends it. Signals are blocked before the server's threads are made, which
 * inherit that, so that they come to sigwait alone. The end waits for the answer that is being
 * made, a second signal does not. */
static bool serve(const struct serve_options *options, struct session *session, const char *page,
                  struct attn_error *error)
{
    const struct serve_settings settings = {
        .host = options->host,
        .port = options->port,
        .page = page,
        .answer = serve_look,
        .user = session,
    };
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);

    struct server *server;
    if (!server_start(&server, &settings, error))
        return false;
    bool done = print_url(options->host, server_port(server), error);
    if (done && progress_is_shown())
        fputs("attn serve: open this address in a browser; Ctrl-C ends it\n", stderr);
    int signal_number;
    if (done)
        sigwait(&ends, &signal_number);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);
    server_stop(server);
    return done;
}

static bool run(const struct serve_options *options, struct attn_error *error)
{
    struct session session = {0};
    struct attn_buffer page = {0};
    bool done = session_locate(&session, options->shared.model, error) &&
                session_open_settings(&session, error) && session_open_tokenizer(&session, error) &&
                session_open_text_model(&session, options->shared.threads, error) &&
                draw_page_form(session.name, &page, error);
    if (done)
        done = serve(options, &session, page.data, error);
    attn_buffer_release(&page);
    session_close(&session);
    return done;
}

enum status verb_serve(int argc, char **argv, struct attn_error *error)
{
    struct serve_options options = {.host = "127.0.0.1", .port = PORT_DEFAULT};
    if (!options_parse(argc, argv, option_table, take_option, &options, &options.shared, error))
        return STATUS_USAGE;
    if (options.shared.help)
        return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
    if (options.shared.operand_count > 0) {
        attn_error_set(error, "'%s' is not expected: a text is typed into the page",
                       options.shared.operands[0]);
        return STATUS_USAGE;
    }
    return run(&options, error) ? STATUS_SUCCESS : STATUS_FAILURE;
}
