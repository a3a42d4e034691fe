/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The kernel side of address translation: where the kernel keeps it, and the reports of the flow
 * programs. What these mean is in flows/translations.h.
 */
#ifndef NETOBS_ENGINE_NAT_H
#define NETOBS_ENGINE_NAT_H

#include "base/log.h"
#include "bpf/nat.h"

#include <stddef.h>
#include <stdint.h>

struct program_set;
struct ring_buffer;

/**
 * Find where this kernel has the translation of a packet, by its type information (BTF), which
 * may be that of the module nf_conntrack.
 *
 * @return 0; -ENOENT: it has no conntrack, or the module is not loaded; -EPROTO: its structs are
 *         others than is known; others from libbpf
 */
int nat_find_layout(struct nat_layout *ret_layout, const struct log *log);

/* Zeroes: off. */
struct nat {
	const struct log *log;
	uint32_t n_cpus;
	uint32_t seen_buckets;		     /* per CPU and generation */
	struct nat_notes *seen;		     /* mapped */
	const struct nat_counters *counters; /* mapped */
	struct ring_buffer *ring;
	int ring_fd;
	void (*on_event)(void *ctx, const struct nat_event *event);
	void *ctx;
};

/** @return 0, or -errno, which is logged */
int nat_open(struct nat *nat, const struct program_set *maps, uint32_t n_cpus,
	     void (*on_event)(void *ctx, const struct nat_event *event),
	     void *ctx, const struct log *log);

void nat_close(struct nat *nat);

/* It wakes only when much is waiting (EPOLLET); -1: there is none. */
int nat_fd(const struct nat *nat);

/* Take all reports that are there. */
void nat_read(const struct nat *nat);

/* Have all translations be reported again in a generation that no program writes to. */
void nat_forget(const struct nat *nat, uint32_t generation);

/* Sum up what the programs have counted. */
struct nat_counters nat_count(const struct nat *nat);

#endif
