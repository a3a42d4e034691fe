/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Connections that the programs report, by slot: chosen ones, and candidates that the expression
 * has not accepted or rejected yet. Offsets in their streams continue when sequence numbers wrap.
 */
#ifndef NETOBS_TRACE_TRACED_H
#define NETOBS_TRACE_TRACED_H

#include "bpf/trace.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum { TRACED_FACES_MAX = 64 };

struct traced_stream {
	int64_t last;	/* offset of the sequence number that was seen last */
	uint32_t seq;	/* that number */
	bool has_first; /* offset 0 is the first byte, not the first one seen */
	bool is_known;
};

/* The last process that used a socket. */
struct traced_owner {
	uint32_t pid; /* 0: not known */
	char command[16];
};

struct traced {
	uint64_t id; /* 0: none */
	struct trace_tuple *faces;
	uint32_t n_faces, faces_capacity;
	uint64_t n_events; /* reported events, once it is chosen */
	bool is_chosen;
	bool is_matching; /* the expression matches, but the process is not known yet */
	bool is_refused; /* rejected; kept until its packet has passed all points */
	bool has_initiator;
	bool has_datagrams; /* it has datagrams, and no stream */
	uint8_t seen;	    /* bits of directions with packets */
	uint8_t n_closes;   /* sockets that were closed */
	uint8_t n_fins;	    /* bits of directions; 3: both, or RST */
	uint64_t opened_ns; /* CLOCK_BOOTTIME */
	uint64_t last_ns;   /* of its last report */
	uint64_t until_ns;  /* when netobs_trace_arm() expires; 0: at its end */
	int64_t alert_ns;   /* of the alert for which it is traced; 0: none */
	char alert[64];	    /* name of the alert's rule */
	struct traced_stream streams[2];
	struct traced_owner owners[2]; /* of sockets, by the direction in which they send */
	struct trace_report *pending; /* reports of a candidate */
	uint32_t n_pending;
	uint32_t n_pending_others; /* pending reports that no output would miss */
	uint32_t n_pending_lost; /* reports that an output misses, as they were not kept */
	/* Place among the chosen connections: struct trace_room */
	TAILQ_ENTRY(traced) by_idle;
	uint64_t listed_ns; /* last_ns when it got its place there */
};

/** Begin a candidate in a slot, whose previous connection has ended. */
void traced_begin(struct traced *traced, uint64_t id, uint64_t now_ns,
		  bool has_initiator);

/** Free the contents of a slot: it has no connection any more. */
void traced_clear(struct traced *traced);

/** Add a tuple. @return false: there are TRACED_FACES_MAX, or there is no memory */
bool traced_add_face(struct traced *traced, const struct trace_tuple *tuple);

/** @return whether @report is of a packet that begins or ends a stream of TCP */
bool traced_is_bound(const struct trace_report *report);

/**
 * Keep a report until the connection is chosen or refused.
 *
 * @param is_counted  an output would miss it; the others have a limit of their own
 * @return false: there are too many, or there is no memory
 */
bool traced_keep(struct traced *traced, const struct trace_report *report,
		 bool is_counted);

/** Free the kept reports: the connection was chosen or refused. */
void traced_drop_pending(struct traced *traced);

/** Update the connection from @report. @return the offset of its first byte */
int64_t traced_note(struct traced *traced, const struct trace_report *report);

/** @return the process of the socket that sends in @direction, else of the other socket; NULL: unknown */
const struct traced_owner *traced_owner(const struct traced *traced,
					uint8_t direction);

/** @return whether no more reports of a connection are expected at @now_ns */
bool traced_is_over(const struct traced *traced, uint64_t now_ns);

/** The tuple of a packet or socket, as the programs have it. */
struct trace_tuple traced_tuple(const struct trace_report *report);

/* Chosen connections in the order of their last events: the first one is evicted for another. */
TAILQ_HEAD(trace_room, traced);

#endif
