/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* tcx links (Linux 6.6), with headers and a libbpf that do not know them. */
#ifndef NETOBS_ATTACH_TCX_H
#define NETOBS_ATTACH_TCX_H

#include "catalogue/direction.h"

#include <netobs/netobs.h>
#include <stdint.h>

/*
 * Link a program to a direction of an interface, before all others or after
 * them.
 *
 * @return a file descriptor, or -errno
 */
int tcx_link(int program_fd, uint32_t ifindex, enum direction direction,
	     enum netobs_attach_order order);

/*
 * Whether the kernel has links, for those who may not make a network namespace to try it in:
 * requests one that it understands and then has to refuse.
 *
 * @return 0, or why not
 */
int tcx_probe(int program_fd);

/* @return the interface of a link; 0: it has disappeared, and the link does nothing */
uint32_t tcx_link_ifindex(int link_fd);

enum { TCX_PROGRAMS_MAX = 64 }; /* the kernel's BPF_MPROG_MAX */

/*
 * The ids of the programs there, first to last.
 *
 * @return how many; -EINVAL: the kernel has no tcx; other -errno
 */
int tcx_programs(uint32_t ifindex, enum direction direction,
		 uint32_t ret_ids[TCX_PROGRAMS_MAX]);

#endif
