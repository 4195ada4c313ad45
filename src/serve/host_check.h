/* Whether a request means this server: against pages of other sites that ask it in their own name
 * (DNS rebinding, cross-site requests). */
#ifndef ATTN_SERVE_HOST_CHECK_H
#define ATTN_SERVE_HOST_CHECK_H

#include <stdbool.h>
#include <stdint.h>

/* A Host header (RFC 9110, section 7.2) that names `port`, and a host that no one else can have
 * pointed here: an address in figures, localhost, or `name`, which the server was told to listen
 * on. Without a port it names 80. host may be NULL, which means none. */
bool host_check(const char *host, const char *name, uint16_t port);

/* An Origin header (RFC 6454) that is this server's own page: "http://" and the Host header.
 * Without one (NULL) no browser page is asking across sites. */
bool origin_check(const char *origin, const char *host);

#endif
