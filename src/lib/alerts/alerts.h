/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The kernel side of rules about connections: tables of rules, filters, counters, and the ring
 * buffer that alerts come through.
 */
#ifndef NETOBS_ALERTS_ALERTS_H
#define NETOBS_ALERTS_ALERTS_H

#include "bpf/alert.h"
#include "engine/store.h"

/* All zeroes: alerts are off. */
struct alerts {
	const struct log *log;
	struct store *store;
	struct alert_tables *tables;	  /* mapped */
	const struct alert_count *counts; /* mapped, ALERT_SLOTS for each CPU */
	struct alert_prefix *prefixes; /* mapped, two tables of them for each CPU */
	/* Sums of prefix counters of earlier tables, by slot. */
	struct alert_prefix before[ALERT_SLOTS];
	uint16_t serial; /* serial number of the last table */
	struct ring_buffer *ring;
	void (*on_event)(void *ctx, const struct alert_event *event);
	void *ctx;
	uint64_t *entered; /* by CPU: runs entered when the table was replaced */
	int64_t slice_end_ns;
	uint32_t slice_events; /* limit of events; 0: slice_end_ns is the limit */
};

/**
 * @param store     opened with options.alerts
 * @param on_event  called by alerts_read()
 * @return 0, or -errno, which is logged
 */
int alerts_open(struct alerts *alerts, struct store *store,
		void (*on_event)(void *ctx, const struct alert_event *event),
		void *ctx, const struct log *log);

void alerts_close(struct alerts *alerts);

/** @return a descriptor that polls readable when there are alerts; -EBADF: there are none */
int alerts_fd(const struct alerts *alerts);

/* Deliver alerts for some milliseconds. */
void alerts_read(struct alerts *alerts);

/* Deliver all pending alerts, however long that takes. */
void alerts_read_all(struct alerts *alerts);

/**
 * Apply these filters to connections from now on.
 *
 * @param filter  a list; the first rule has bit 0 of verdicts
 * @param epoch   never used before
 * @return 0; -E2BIG: the filters are too large; -ENOTSUP: the CPUs have lanes; both are logged; others
 *         from the kernel
 */
int alerts_set_filter(struct alerts *alerts, const struct filter *filter,
		      uint32_t epoch);

/* Have the programs read these rules from now on. */
void alerts_set_table(struct alerts *alerts, const struct alert_table *table);

/* Sum up the counts of all CPUs. */
void alerts_count(const struct alerts *alerts,
		  struct alert_count ret_totals[ALERT_SLOTS]);

#endif
