/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The programs that see what processes ask for when they connect, and what they get instead. What
 * their reports mean is in flows/socket_translations.h.
 */
#ifndef NETOBS_ENGINE_CONNECTS_H
#define NETOBS_ENGINE_CONNECTS_H

#include "base/log.h"
#include "bpf/connect.h"
#include "program_set.h"

#include <stdbool.h>

struct ring_buffer;

enum { CONNECT_POINTS_MAX = 14 };

/* Zeroes: off. Stays where it is while it is open. */
struct connects {
	struct program_set set;
	struct attach_point points[CONNECT_POINTS_MAX];
	bool by_files; /* sockets are listed by the files of processes */
	bool is_traced; /* COMPAT(<6.17): programs are in functions of the kernel */
	int cgroup_fd; /* of the root; -errno: it cannot be opened */
	const struct connect_counters *counters; /* mapped */
	struct ring_buffer *ring;
	int ring_fd;
	uint64_t n_listed;	/* sockets of UDP that had connected then, */
	bool is_new;		/* or were about to: once more */
	int64_t rests_until_ns; /* before that, they are not listed again */
	void (*on_event)(void *ctx, const struct connect_event *event);
	void *ctx;
};

/**
 * Load the programs and attach them, which changes nothing for programs of others.
 *
 * @return 0; -errno: the kernel lacks something, nothing is logged, and nothing stays loaded
 */
int connects_open(struct connects *connects,
		  void (*on_event)(void *ctx, const struct connect_event *event),
		  void *ctx);

void connects_close(struct connects *connects);

/* It wakes only when much is waiting (EPOLLET); -1: there is none. */
int connects_fd(const struct connects *connects);

/* Take all reports that are there. */
void connects_read(const struct connects *connects);

/*
 * Have sockets of UDP reported that have connected since, and take all reports. The kernel looks at each
 * socket for that; of so many that it takes long, at most a tenth of the time.
 */
void connects_list(struct connects *connects);

/* @return reports that were lost: too many were waiting */
uint64_t connects_lost(const struct connects *connects);

/* @return calls of UDP whose address was not seen: the kernel skipped a traced one, or there were too many threads */
uint64_t connects_missed(const struct connects *connects);

/*
 * Asks the kernel: only for counters that are shown.
 *
 * @return calls of TCP that the kernel did not trace: on a preemptible kernel, a thread preempted the same program
 *         on its CPU. Such a socket has no translation, and takes none of others
 */
uint64_t connects_skipped(const struct connects *connects);

#endif
