/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The packets of a benchmark: a frame, the flow numbers that follow each other, and the
 * program that makes many flows out of one packet of BPF_PROG_TEST_RUN.
 */
#ifndef NETOBS_BENCH_SPREAD_H
#define NETOBS_BENCH_SPREAD_H

#include "shared.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spread_bpf;

enum { FRAME = 128 };

enum traffic {
	TRAFFIC_UDP4,
	TRAFFIC_UDP6,
	TRAFFIC_TCP4,
	TRAFFIC_TCP6,
	TRAFFIC_TALK4,
	TRAFFIC_TALK6,
	TRAFFICS
};

extern const char *const traffic_names[TRAFFICS + 1];

/* Make a packet between addresses of RFC 2544 or RFC 3849, without the number of its flow. */
void frame_make(enum traffic traffic, uint8_t ret_frame[FRAME]);

enum order {
	ORDER_EACH, /* every flow once: to fill a store */
	ORDER_UNIFORM,
	ORDER_ZIPF,
};

struct spread {
	struct spread_bpf *skel;
	enum traffic traffic; /* the caller's choice */
	uint32_t n_cpus;      /* possible ones */
	uint32_t flows;	      /* prepared */
	uint32_t room; /* flows that may occur: one for each CPU at least */
	uint32_t length; /* of the uniform and of the Zipf order: a power of two */
	uint32_t capacity;
	uint32_t *numbers;	      /* mapped: uniform, Zipf, each */
	uint32_t *sent;		      /* mapped: by connections, see talk.h */
	struct cursor_state *cursors; /* mapped */
};

/* For up to @max_flows. Says on stderr why it fails. */
int spread_open(struct spread *spread, uint32_t max_flows);
void spread_close(struct spread *spread);

/* Make the orders of @flows flows; of @n_cpus CPUs each may have its own. */
int spread_prepare(struct spread *spread, uint32_t flows, uint32_t n_cpus,
		   bool with_zipf);

/* Let this process forget the mapped numbers; the programs still have them. */
void spread_unmap(struct spread *spread);

/* Have packets run through a program. */
int spread_aim(const struct spread *spread, int prog_fd);

/*
 * From now on CPU @cpu's packets follow @order: each flow once from the first
 * on, or on from wherever it was.
 */
void spread_start(struct spread *spread, uint32_t cpu, enum order order);

/* ... with flows of its own, those of the @part-th of @parts. */
void spread_start_part(struct spread *spread, uint32_t cpu, enum order order,
		       uint32_t part, uint32_t parts);

/* Make @frame, which frame_make() has made for the same traffic, the next packet of @flow. */
void spread_write(const struct spread *spread, uint8_t *frame, uint32_t flow);

/* The next @n flows of CPU @cpu, for packets that do not run through the program. */
void spread_take(const struct spread *spread, uint32_t cpu, uint32_t *ret_flows,
		 uint32_t n);

/*
 * Run @n packets on this CPU; nanoseconds per packet go to @ret_ns, without
 * those in which something else ran. -EINTR: a signal came.
 */
int spread_run(const struct spread *spread, uint32_t n, uint32_t *ret_ns);

/* Of one of the two programs that do nothing. */
int spread_empty_fd(const struct spread *spread, bool is_second);

#endif
