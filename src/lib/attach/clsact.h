/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * COMPAT(<6.6): filters of the clsact qdisc, for kernels without tcx. All in
 * the calling thread's network namespace.
 */
#ifndef NETOBS_ATTACH_CLSACT_H
#define NETOBS_ATTACH_CLSACT_H

#include "catalogue/direction.h"
#include "base/log.h"
#include "host/rtnl.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Late, so that others' filters come first; several observers share a host. */
	CLSACT_PRIORITY_FIRST = 0xfff0,
	CLSACT_PRIORITIES = 8,
};

static inline bool clsact_is_reserved(uint32_t priority)
{
	return priority - CLSACT_PRIORITY_FIRST < CLSACT_PRIORITIES;
}

/* Our filter; `jump_fd` is -1 when there is none. */
struct clsact_filter {
	int jump_fd; /* holds the program; without it the stub does nothing */
	uint32_t priority;
	uint32_t handle;
	uint32_t program_id; /* id of the stub */
};

#define CLSACT_FILTER_NONE ((struct clsact_filter){ .jump_fd = -1 })

/* As tcx_probe(): whether the kernel has qdiscs of @kind, of up to 7 characters. */
int clsact_probe(const char *kind);

/*
 * Make sure the qdisc is there and put the stub (src/bpf/stub.bpf.c) in front of
 * @program_fd, as a filter. Stubs of processes that are gone are removed.
 */
int clsact_add(uint32_t ifindex, enum direction direction, int program_fd,
	       struct clsact_filter *ret_filter);

/* Put @program_fd in the place of its program, at once. @return 0, or -errno */
int clsact_replace(const struct clsact_filter *filter, int program_fd);

/*
 * Remove the filter, and the qdisc when it was made for it or another of ours,
 * and no filters are left there.
 */
void clsact_delete(uint32_t ifindex, enum direction direction,
		   struct clsact_filter *filter);

/* Call @on_filter for the message of each filter there, in the order of their priorities. */
int clsact_for_each_filter(uint32_t ifindex, enum direction direction,
			   rtnl_message_fn on_filter, void *ctx);

/* False once the filter has disappeared with its interface, or another one has its place. */
bool clsact_is_there(uint32_t ifindex, enum direction direction,
		     const struct clsact_filter *filter);

#endif
