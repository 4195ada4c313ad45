/* Lets each allocation of a call fail in turn. An executable that uses this has the dependency
 * `allocation_sweep` of tests/base/meson.build, which leads the program's allocations and those of
 * the rooms that it tests through here. Shared libraries keep their own: jansson 2.14, for one,
 * passes over a failure while it reads a string and goes on with a letter less. */
#ifndef ATTN_TESTS_ALLOCATION_SWEEP_H
#define ATTN_TESTS_ALLOCATION_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Calls `attempt` with its n-th allocation failing, for n = 0, 1, 2, … until it returns true
 * without having come to the n-th. Fails the test where a failure sets no message, or is passed
 * over in silence. Returns the number of failures that were reported. Leaks show under
 * AddressSanitizer. */
size_t allocation_sweep(bool (*attempt)(void *user, struct attn_error *error), void *user);

#endif
