/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Programs at hooks of netfilter, Linux 6.4, which libbpf before 1.3 does not support. */
#ifndef NETOBS_ENGINE_NETFILTER_H
#define NETOBS_ENGINE_NETFILTER_H

#include <stdbool.h>
#include <stdint.h>

/* Priorities on each side of a hook for programs before or behind all others, one per tracer. */
enum { NETFILTER_PRIORITIES = 256 };

struct bpf_program;

/* Set the type of a program that is not loaded yet. */
void netfilter_set_type(struct bpf_program *program);

/**
 * Attach a program in the network namespace of the calling thread.
 *
 * @param family  NFPROTO_IPV4 or NFPROTO_IPV6
 * @param hook  NF_INET_...
 * @param priority  one that no other BPF program has at this hook
 * @return the link's descriptor, or -errno; -EBUSY: a program has that priority
 */
int netfilter_attach(int program_fd, uint32_t family, uint32_t hook,
		     int32_t priority);

/**
 * Attach before or after all others, at the outermost free priority of NETFILTER_PRIORITIES.
 *
 * @return the link's descriptor, or -errno; -EBUSY: no priority is free
 */
int netfilter_attach_outside(int program_fd, uint32_t family, uint32_t hook,
			     bool is_behind);

/**
 * Attach a program that accepts all packets to a hook of the calling thread's namespace, for a moment.
 *
 * @return 0; -errno: the kernel, or privileges, do not allow it
 */
int netfilter_probe(void);

#endif
