/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What records are sent through, and how long that takes. */
#ifndef NETOBS_BENCH_EXPORT_SUBJECT_H
#define NETOBS_BENCH_EXPORT_SUBJECT_H

#include <netobs/flow.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct export_subject {
	const char *name;
	const char *spec; /* of a sink; NULL: only @encode is measured */
	size_t (*encode)(const struct netobs_flow *flow, char *buf);
	bool is_optional; /* it may be missing */
};

/* What is measured by default: all that needs no collector. */
extern const struct export_subject export_subjects[];
extern const size_t n_export_subjects;

struct export_load {
	const struct netobs_flow *flows; /* EXPORT_FLOWS of them, again and again */
	uint32_t records;
};

enum { EXPORT_FLOWS = 4096 };

/*
 * @n records, each other one of IPv6, of TCP mostly, seen at one or two points. The
 * caller frees them, as one piece. NULL: -ENOMEM.
 */
struct netobs_flow *export_flows_make(uint32_t n);

struct export_sample {
	double wall_ns, cpu_ns; /* per record; CPU time of all threads */
};

enum { EXPORT_WHY_MAX = 256 };

/*
 * Open it, send records until all are delivered, and close it. @why gets the last
 * words on an error. -ENOENT: a file, or the kind of sink, is not there; -ETIMEDOUT:
 * the other side takes nothing; -EINTR: the user wants to stop.
 */
int export_measure(const struct export_subject *subject,
		   const struct export_load *load,
		   struct export_sample *ret_sample, char why[EXPORT_WHY_MAX]);

#endif
