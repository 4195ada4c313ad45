#include "serve/host_check.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_LIMIT = 256, HTTP_PORT = 80 };

static bool is_address(int family, const char *text)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(family, text, address) == 1;
}

/* The number behind ":", or that of HTTP where nothing is there. */
static bool names_port(const char *text, uint16_t port)
{
    if (*text == '\0')
        return port == HTTP_PORT;
    if (*text != ':' || strspn(text + 1, "0123456789") != strlen(text + 1))
        return false;
    const size_t digits = strlen(text + 1);
    return digits >= 1 && digits <= 5 && strtol(text + 1, NULL, 10) == port;
}

bool host_check(const char *host, const char *name, uint16_t port)
{
    if (!host || !*host)
        return false;
    const bool in_brackets = *host == '[';
    const char *begin = host + in_brackets;
    const size_t size = strcspn(begin, in_brackets ? "]" : ":");
    char text[NAME_LIMIT];
    if (size == 0 || size >= sizeof text || (in_brackets && begin[size] != ']'))
        return false;
    memcpy(text, begin, size);
    text[size] = '\0';
    if (!names_port(begin + size + in_brackets, port))
        return false;
    if (in_brackets)
        return is_address(AF_INET6, text);
    return is_address(AF_INET, text) || strcasecmp(text, "localhost") == 0 ||
           strcasecmp(text, name) == 0;
}

bool origin_check(const char *origin, const char *host)
{
    static const char scheme[] = "http://";
    return !origin || (strncasecmp(origin, scheme, sizeof scheme - 1) == 0 &&
                       strcasecmp(origin + sizeof scheme - 1, host) == 0);
}
