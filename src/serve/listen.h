/* A socket that waits for connections. */
#ifndef ATTN_SERVE_LISTEN_H
#define ATTN_SERVE_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* *port comes in as what is wanted, 0 for any, and leaves as what it is. The caller closes it. */
bool listen_open(const char *host, uint16_t *port, int *socket, struct attn_error *error);

#endif
