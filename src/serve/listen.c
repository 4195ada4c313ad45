#include "serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64 };

static bool prepare(int made, const struct addrinfo *address)
{
    const int on = 1;
    const int flags = fcntl(made, F_GETFL);
    return flags >= 0 && fcntl(made, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(made, F_SETFD, FD_CLOEXEC) == 0 &&
           setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
           bind(made, address->ai_addr, address->ai_addrlen) == 0 && listen(made, BACKLOG) == 0;
}

static uint16_t port_of(int made)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(made, (struct sockaddr *)&address, &size))
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

bool listen_open(const char *host, uint16_t *port, int *made, struct attn_error *error)
{
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)*port);
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *addresses = NULL;
    const int failed = getaddrinfo(host, service, &hints, &addresses);
    if (failed)
        return attn_error_set(error, "cannot listen on %s: %s", host, gai_strerror(failed));
    int reason = 0;
    *made = -1;
    for (const struct addrinfo *address = addresses; address && *made < 0;
         address = address->ai_next) {
        *made = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
        if (*made >= 0 && prepare(*made, address))
            break;
        reason = errno;
        if (*made >= 0)
            close(*made);
        *made = -1;
    }
    freeaddrinfo(addresses);
    if (*made < 0)
        return attn_error_set(error, "cannot listen on %s, port %u: %s", host, (unsigned)*port,
                              strerror(reason));
    *port = port_of(*made);
    return true;
}
