/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* tcx links (Linux 6.6), with headers and a libbpf that do not know them. */
#ifndef NETOBS_LIB_TCX_H
#define NETOBS_LIB_TCX_H

#include <netobs/flow.h>
#include <stdint.h>

/*
 * Link a program to a direction of an interface: a file descriptor, or -errno.
 * On ingress it becomes the first, to see what others drop; on egress the
 * last, to see what they let pass: what arrived and what leaves.
 */
int tcx_link(int program_fd, uint32_t ifindex, enum netobs_direction direction);

#endif
