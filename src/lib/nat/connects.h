/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The programs that see the address a process connects to, and the address that other programs
 * replace it by. nat/translations.h interprets their reports.
 */
#ifndef NETOBS_NAT_CONNECTS_H
#define NETOBS_NAT_CONNECTS_H

#include "base/log.h"
#include "bpf/connect.h"
#include "engine/program_set.h"

#include <bpf/libbpf.h>
#include <stdbool.h>

enum { CONNECT_POINTS_MAX = 14 };

/* All zeroes: off. Must not be moved while it is open. */
struct connects {
	struct program_set set;
	struct attach_point points[CONNECT_POINTS_MAX];
	bool by_files; /* iterate over the files of processes, not over a map of sockets */
	bool is_traced; /* COMPAT(<6.17): the programs trace kernel functions */
	int cgroup_fd;	/* of the root group; -errno: it cannot be opened */
	const struct connect_counters *counters; /* mapped */
	struct ring_buffer *ring;
	int ring_fd;
	uint64_t n_listed; /* counters->udp at the last listing */
	bool is_new; /* it had risen then: some may not have connected yet, so list again */
	int64_t rests_until_ns; /* do not list before this time */
};

/**
 * Load the programs and attach them. Programs of others run as before.
 *
 * @param on_event  for connects_read(), of a struct connect_event
 * @return 0; -errno: the kernel lacks something, nothing is logged, and nothing stays loaded
 */
int connects_open(struct connects *connects, ring_buffer_sample_fn on_event,
		  void *ctx);

void connects_close(struct connects *connects);

/* @return a descriptor to poll with EPOLLET, readable only when many reports wait; -1: none */
int connects_fd(const struct connects *connects);

/* Deliver all waiting reports. */
void connects_read(const struct connects *connects);

/*
 * Have the UDP sockets that connected since the last call reported, and deliver all reports. The kernel
 * visits each socket for that; where this takes long, it is done for at most a tenth of the time.
 */
void connects_list(struct connects *connects);

/* @return reports that were lost: too many were waiting */
uint64_t connects_lost(const struct connects *connects);

/* @return UDP calls whose address is unknown: not traced, or of too many threads */
uint64_t connects_missed(const struct connects *connects);

/*
 * Slow, as it asks the kernel: call it only to show counters.
 *
 * @return TCP calls that the kernel did not trace: on a preemptible kernel, a thread preempted the same
 *         program on its CPU. Such a socket has no translation, and none of another socket
 */
uint64_t connects_skipped(const struct connects *connects);

#endif
