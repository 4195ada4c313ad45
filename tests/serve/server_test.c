/* The server with an answer of its own, asked through sockets. */
#include "serve/server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_test.h"

static const char page[] = "<!DOCTYPE html><title>A page</title>";

/* Answers {"echo": size}; a body of "bad" is refused, "fail" fails, "slow" takes its time. */
static enum serve_outcome answer_size(void *user, const char *body, size_t size,
                                      struct attn_buffer *answer, struct attn_error *error)
{
    int *calls = user;
    ++*calls;
    if (strcmp(body, "bad") == 0) {
        attn_error_set(error, "the text is bad");
        return SERVE_REFUSED;
    }
    if (strcmp(body, "fail") == 0) {
        attn_error_set(error, "the model \"m\" is ill");
        return SERVE_FAILED;
    }
    if (strcmp(body, "slow") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    attn_buffer_format(answer, "{\"echo\": %zu}", size);
    return SERVE_ANSWERED;
}

struct scene {
    struct server *server;
    int calls;
};

static int start(void **state)
{
    static struct scene scene;
    struct attn_error error = {""};
    scene = (struct scene){0};
    const struct serve_settings settings = {"127.0.0.1", 0, page, answer_size, &scene.calls};
    *state = &scene;
    if (server_start(&scene.server, &settings, &error))
        return 0;
    print_error("%s\n", error.message);
    return 1;
}

static int stop(void **state)
{
    struct scene *scene = *state;
    server_stop(scene->server);
    return 0;
}

static int connect_to(const struct scene *scene)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(server_port(scene->server)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(made >= 0);
    assert_int_equal(connect(made, (const struct sockaddr *)&address, sizeof address), 0);
    return made;
}

static void write_all(int connection, const char *text)
{
    const size_t size = strlen(text);
    assert_int_equal(send(connection, text, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Everything until the other side closes; `reply` ends with NUL. */
static void read_all(int connection, char *reply, size_t room)
{
    size_t size = 0;
    for (ssize_t got; (got = recv(connection, reply + size, room - 1 - size, 0)) > 0;)
        size += (size_t)got;
    reply[size] = '\0';
    close(connection);
}

enum { REPLY_ROOM = 8192 };

/* Sends head and body, PORT in the head standing for the port, and reads the reply. */
static void ask(const struct scene *scene, const char *head, const char *body, char *reply)
{
    char request[4096], port[8];
    const char *at = strstr(head, "PORT");
    snprintf(port, sizeof port, "%u", (unsigned)server_port(scene->server));
    snprintf(request, sizeof request, "%.*s%s%s\r\nConnection: close\r\n\r\n%s",
             (int)(at ? at - head : (ptrdiff_t)strlen(head)), head, at ? port : "",
             at ? at + 4 : "", body);
    const int connection = connect_to(scene);
    write_all(connection, request);
    read_all(connection, reply, REPLY_ROOM);
}

static void expect(const struct scene *scene, const char *head, const char *body, int status,
                   const char *part)
{
    char reply[REPLY_ROOM], first[32];
    ask(scene, head, body, reply);
    snprintf(first, sizeof first, "HTTP/1.1 %d ", status);
    if (strncmp(reply, first, strlen(first)) != 0 || !strstr(reply, part))
        fail_msg("%s: expected %d and '%s', got:\n%s", head, status, part, reply);
}

#define POST(size)                                                                                 \
    "POST /look HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Type: application/json\r\n"            \
    "Content-Length: " size

static void test_the_page(void **state)
{
    expect(*state, "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT", "", 200, page);
    expect(*state, "GET /?x=1 HTTP/1.1\r\nHost: localhost:PORT", "", 200, page);
    expect(*state, "HEAD / HTTP/1.1\r\nHost: localhost:PORT", "", 200, "Cache-Control: no-store");
}

static void test_questions(void **state)
{
    expect(*state, POST("5"), "hello", 200, "{\"echo\": 5}");
    expect(*state, POST("3"), "bad", 400, "{\"error\": \"the text is bad\"}");
    expect(*state, POST("4"), "fail", 500, "{\"error\": \"the model \\\"m\\\" is ill\"}");
    expect(*state, POST("0"), "", 200, "{\"echo\": 0}");
}

static void test_what_is_refused(void **state)
{
    const struct scene *scene = *state;
    expect(scene, "GET / HTTP/1.1\r\nHost: evil.example:PORT", "", 403, "Host");
    expect(scene, "GET / HTTP/1.0", "", 403, "Host");
    expect(scene, POST("2") "\r\nOrigin: http://evil.example", "{}", 403, "another site");
    expect(scene, "GET /etc/passwd HTTP/1.1\r\nHost: localhost:PORT", "", 404, "error");
    expect(scene, "GET /look HTTP/1.1\r\nHost: localhost:PORT", "", 405, "Allow: ");
    expect(scene, "DELETE / HTTP/1.1\r\nHost: localhost:PORT", "", 405, "error");
    expect(scene,
           "POST /look HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Type: text/plain\r\n"
           "Content-Length: 2",
           "{}", 415, "application/json");
    expect(scene, POST("99999999"), "", 413, "too long");
    assert_int_equal(scene->calls, 0);
}

/* Of two that read such a request one might take a part of its body for the next request. Which of
 * them libmicrohttpd refuses itself, in its own words, depends on its version. */
static void test_headers_that_contradict(void **state)
{
    static const char *const heads[] = {
        POST("2") "\r\nContent-Length: 9",
        POST("2") "\r\nContent-Length: 2",
        POST("2") "\r\nTransfer-Encoding: chunked",
        POST("2") "\r\nTransfer-Encoding: identity",
        ("POST /look HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Type: application/json\r\n"
         "Transfer-Encoding: gzip, chunked"),
        "GET / HTTP/1.1\r\nHost: localhost:PORT\r\nHost: evil.example",
    };
    for (size_t n = 0; n < sizeof heads / sizeof heads[0]; n++)
        expect(*state, heads[n], "{}", 400, "\r\n\r\n");
    expect(*state,
           "POST /look HTTP/1.1\r\nHost: localhost:PORT\r\n"
           "Content-Type: application/json\r\nTransfer-Encoding: Chunked",
           "5\r\nhello\r\n0\r\n\r\n", 200, "{\"echo\": 5}");
}

/* A body without a length that does not end: the connection is closed. */
static void test_a_body_without_end(void **state)
{
    const struct scene *scene = *state;
    char head[256], piece[4096 + 16];
    snprintf(head, sizeof head,
             "POST /look HTTP/1.1\r\nHost: localhost:%u\r\nContent-Type: application/json\r\n"
             "Transfer-Encoding: chunked\r\n\r\n",
             (unsigned)server_port(scene->server));
    const size_t prefix = (size_t)snprintf(piece, sizeof piece, "1000\r\n");
    memset(piece + prefix, ' ', 4096);
    memcpy(piece + prefix + 4096, "\r\n", 2);
    const int connection = connect_to(scene);
    write_all(connection, head);
    bool closed = false;
    for (int n = 0; !closed && n < 4 * SERVE_BODY_LIMIT / 4096; n++)
        closed = send(connection, piece, prefix + 4098, MSG_NOSIGNAL) < 0;
    char reply[REPLY_ROOM];
    read_all(connection, reply, sizeof reply);
    assert_true(closed || reply[0] == '\0');
    assert_int_equal(scene->calls, 0);
    test_questions(state);
}

static void *ask_slowly(void *user)
{
    char reply[REPLY_ROOM];
    ask(user, POST("4"), "slow", reply);
    return strstr(reply, "{\"echo\": 4}") ? user : NULL;
}

/* While an answer is made, and others wait for theirs, the page is served; whoever has gone, or
 * sends half a request, holds nobody up. */
static void test_others_are_served_meanwhile(void **state)
{
    pthread_t threads[3];
    for (int n = 0; n < 3; n++)
        assert_int_equal(pthread_create(&threads[n], NULL, ask_slowly, *state), 0);
    const int half = connect_to(*state), gone = connect_to(*state);
    write_all(half, "POST /look HTTP/1.1\r\nHost: local");
    write_all(gone, "POST /look HTTP/1.1\r\n");
    close(gone);
    test_the_page(state);
    close(half);
    for (int n = 0; n < 3; n++) {
        void *answered = NULL;
        pthread_join(threads[n], &answered);
        assert_non_null(answered);
    }
}

/* Nobody waits for ever when the server ends: each connection gets its answer, or is closed. */
static void test_an_end_with_questions_waiting(void **state)
{
    struct scene *scene = *state;
    int connections[3];
    char request[512];
    snprintf(request, sizeof request,
             "POST /look HTTP/1.1\r\nHost: localhost:%u\r\nContent-Type: application/json\r\n"
             "Content-Length: 4\r\n\r\nslow",
             (unsigned)server_port(scene->server));
    for (int n = 0; n < 3; n++) {
        connections[n] = connect_to(scene);
        write_all(connections[n], request);
    }
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    server_stop(scene->server);
    scene->server = NULL;
    for (int n = 0; n < 3; n++) {
        char reply[REPLY_ROOM];
        read_all(connections[n], reply, sizeof reply);
    }
}

static void test_where_it_cannot_listen(void **state)
{
    const struct scene *scene = *state;
    struct server *second;
    struct attn_error error = {""};
    struct serve_settings settings = {"127.0.0.1", server_port(scene->server), page, answer_size,
                                      NULL};
    assert_false(server_start(&second, &settings, &error));
    assert_null(second);
    assert_non_null(strstr(error.message, "cannot listen on 127.0.0.1, port "));
    settings.host = "no.such.host.invalid";
    assert_false(server_start(&second, &settings, &error));
    assert_non_null(strstr(error.message, "cannot listen on no.such.host.invalid"));
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(test_the_page),
        SERVED(test_questions),
        SERVED(test_what_is_refused),
        SERVED(test_headers_that_contradict),
        SERVED(test_a_body_without_end),
        SERVED(test_others_are_served_meanwhile),
        SERVED(test_an_end_with_questions_waiting),
        SERVED(test_where_it_cannot_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
