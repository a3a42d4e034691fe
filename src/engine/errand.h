/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Changes of a map of maps, by a thread that can wait. Such a system call takes
 * effect at once, but returns only after the kernel's grace period: 10 to 50 ms
 * mostly, and over a second was seen on a host whose CPUs were all flooded. The
 * caller's event loop is not to stand still for that, nor could it make more
 * room meanwhile. So a thread makes the call: it blocks all signals, runs no code
 * but that call, at once if it may, touches no memory of the context, and ends.
 */
#ifndef NETOBS_ENGINE_ERRAND_H
#define NETOBS_ENGINE_ERRAND_H

#include <stdint.h>

/* Put @inner_fd at @index; -1: remove what is there. The fds may be closed. */
int errand_send(int outer_fd, uint32_t index, int inner_fd);

/* The same, but wait. */
int errand_run(int outer_fd, uint32_t index, int inner_fd);

#endif
