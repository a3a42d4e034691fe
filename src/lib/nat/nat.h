/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Reports of translations from the flow programs, which translations.h interprets. */
#ifndef NETOBS_NAT_NAT_H
#define NETOBS_NAT_NAT_H

#include "base/log.h"
#include "bpf/nat.h"

#include <bpf/libbpf.h>
#include <stddef.h>
#include <stdint.h>

struct program_set;

/* All zeroes: off. */
struct nat {
	const struct log *log;
	uint32_t n_cpus;
	uint32_t seen_buckets;		     /* per CPU and generation */
	struct nat_notes *seen;		     /* mapped */
	const struct nat_counters *counters; /* mapped */
	struct ring_buffer *ring;
	int ring_fd;
};

/**
 * @param on_event  for nat_read(), of a struct nat_event
 * @return 0, or -errno, which is logged
 */
int nat_open(struct nat *nat, const struct program_set *maps, uint32_t n_cpus,
	     ring_buffer_sample_fn on_event, void *ctx, const struct log *log);

void nat_close(struct nat *nat);

/* @return a descriptor to poll with EPOLLET, readable only when many reports wait; -1: none */
int nat_fd(const struct nat *nat);

/* Deliver all waiting reports. */
void nat_read(const struct nat *nat);

/* Have all translations reported again in a generation that no program writes to. */
void nat_forget(const struct nat *nat, uint32_t generation);

/* @return the sums of the counters over all CPUs */
struct nat_counters nat_count(const struct nat *nat);

#endif
