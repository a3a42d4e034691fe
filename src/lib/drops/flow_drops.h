/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the flow that a dropped packet belonged to. Programs of packets have no part in it: drops
 * of an interval are read (drops/drop_feed.h) before its flows, and wait here, by their tuples,
 * until a record of their flow is filled. A drop has the tuple of the packet when it was dropped and,
 * behind NAT, the one with which it came into the namespace; or, behind NAT of several namespaces, into the
 * first one. A flow has its own and, with translations, the ones before and after NAT. One in common is
 * enough.
 *
 * A tuple may be in use in several network namespaces at once. So a drop belongs to a flow only if it
 * was in a namespace where the flow was seen, or behind the pair of interfaces by which packets of it
 * came or went: a packet that leaves by veth7 is dropped in the container behind that.
 *
 * Drops that no record takes are not lost: each is in a record, waiting, or outside of all flows.
 */
#ifndef NETOBS_DROPS_FLOW_DROPS_H
#define NETOBS_DROPS_FLOW_DROPS_H

#include "base/slots.h"
#include "base/log.h"
#include "bpf/types.h"
#include "drop_feed.h"
#include "flows/flow_extra.h"
#include "who/owners.h"

#include <sys/queue.h>

enum {
	FLOW_DROPS_MAX = 1 << 16, /* drops that wait: 14 MiB */
};

/* Since the beginning: all = in_flows + pending + no_flow + no_tuple + no_room. */
struct flow_drop_counts {
	struct count all;      /* without benign ones */
	struct count in_flows; /* in records */
	struct count pending;
	struct count no_flow; /* no record of its flow came */
	struct count no_tuple; /* neither headers nor a socket give the tuple and the namespace */
	struct count no_room;
	struct count benign;
	uint64_t missed; /* of unknown kind and size: see netobs_drops_stats */
};

struct flow_drops_options {
	bool per_interface; /* flows are: then drops are, too */
	bool no_reasons;    /* treat what the kernel states as absent */
	bool finds_spaces; /* nothing else looks for the namespaces behind pairs */
	const struct flow_extra *nat; /* finds where flows came in; NULL: none */
};

/* Zeroes: off. Stays where it is while it is on. */
struct flow_drops {
	const struct host *host; /* NULL: off */
	const struct log *log;
	struct flow_drops_options options;
	struct drop_feed feed; /* closed: drops are noted by the caller */
	struct spaces spaces;
	enum { DROPS_AT_REST, DROPS_DRAINING, DROPS_SPACES } phase;
	int64_t flip_ns; /* end of the generation of drops that was drained last */
	int64_t wait_ns; /* how long drops wait after that for a record */
	/* When that generation began and ended, by the clock of entries. */
	int64_t begun_stamp_ns, ended_stamp_ns;

	struct slots by_tuple; /* pointers to the newest drop of each tuple that waits */
	TAILQ_HEAD(waiting_drops, waiting_drop) waiting; /* the newest first */
	uint32_t n_waiting;

	struct flow_drop_counts counts;
	struct flow_extra extra; /* for merge_options.extras */
};

/** @return 0; -errno, which is logged */
int flow_drops_open(struct flow_drops *drops, const struct host *host,
		    const struct flow_drops_options *options,
		    const struct log *log);

/** Prepare without programs: the caller notes drops. */
void flow_drops_init(struct flow_drops *drops, const struct host *host,
		     const struct flow_drops_options *options,
		     const struct log *log);

/* A struct of zeroes stays as it is. */
void flow_drops_close(struct flow_drops *drops);

/* A drop of the generation that ended at flip_ns. */
void flow_drops_note(struct flow_drops *drops, const struct netobs_drop *drop);

/** Count drops until @end_ns as no_flow: no record will have them. */
void flow_drops_expire(struct flow_drops *drops, int64_t end_ns);

#endif
