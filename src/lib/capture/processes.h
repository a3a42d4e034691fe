/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The processes that captured packets come from and go to. Sockets are listed while packets wait
 * in the ring buffers, so that those of packets from before the list are known as far as programs
 * have noted them, also if they are closed since.
 */
#ifndef NETOBS_CAPTURE_PROCESSES_H
#define NETOBS_CAPTURE_PROCESSES_H

#include "bpf/capture.h"
#include "who/who.h"

#include <netobs/capture.h>

struct processes {
	struct who who;
	struct netobs_process ends[2]; /* of the packet that is delivered */
	enum { PROCESSES_OLD, PROCESSES_LISTING, PROCESSES_KNOWN } state;
	int64_t begun_ns; /* the list; CLOCK_BOOTTIME */
	int64_t next_ns;  /* the next one, at the earliest */
};

/**
 * Load and attach the programs that follow sockets, which blocks while it looks at all open
 * files: before packets are captured, so that no socket is missed.
 *
 * @param disabled  as netobs_capture_opts.disable_features
 * @return 0, or -errno, which is logged
 */
int processes_open(struct processes *processes, const struct host *host,
		   uint64_t disabled, const struct log *log);

/* List sockets, which blocks, and find the namespaces behind interfaces that are followed now. */
void processes_list(struct processes *processes);

/* A struct of zeroes stays as it is. */
void processes_close(struct processes *processes);

/* @return a descriptor that is readable when processes_read() is due; -1: none is wanted */
int processes_fd(const struct processes *processes);

/* Take note of sockets that were closed, for a millisecond. */
void processes_read(struct processes *processes);

/**
 * Find out up to when packets may be read now. For a millisecond.
 *
 * @param is_urgent  packets are not to wait: of newer sockets, processes may be unknown
 * @param ret_until_ns  CLOCK_BOOTTIME; INT64_MAX: all of them
 * @return 0; or when to call it again, CLOCK_BOOTTIME: packets have to wait
 */
int64_t processes_prepare(struct processes *processes, bool is_urgent,
			  int64_t *ret_until_ns);

/* All packets up to then were read. */
void processes_done_reading(struct processes *processes);

/**
 * Set @out->src_process and dst_process, where these are known.
 *
 * @param packet  the same; with its bytes behind it
 */
void processes_find(struct processes *processes,
		    const struct capture_packet *packet,
		    struct netobs_packet *out);

#endif
