/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The kernel side of rules about connections: tables of rules, filters, counters, and the ring
 * buffer that alerts come through.
 */
#ifndef NETOBS_ALERTS_ALERTS_H
#define NETOBS_ALERTS_ALERTS_H

#include "bpf/alert.h"
#include "engine/store.h"
#include "filter/filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The rules of a context, with the slots that they count in. A rule that is in the next set,
 * too, with the same name and text, keeps its slot.
 */

/* ---- A rule --------------------------------------------------------------------------- */

/*
 * A rule about connections or flows as text: "rtt > 50ms for 3 of 5 hold 30s limit 10/m where port 443".
 * netobs-alert-rules(7) has the grammar.
 */

enum {
	ALERT_TEXT_MAX = 512, /* with the NUL */
	ALERT_HOLD_MAX_S = 24 * 3600,
};

/*
 * Metrics that the programs know nothing of: enum alert_metric goes on with them. A sample is a record of a flow,
 * of any protocol.
 */
enum {
	ALERT_DROPS = ALERT_METRICS, /* packets of it that this kernel dropped */
	ALERT_DROP_SHARE, /* dropped packets, in parts per million of its packets */
	ALERT_RULE_METRICS,
};

struct alert_spec {
	unsigned int metric;
	bool is_ratio; /* the threshold is a multiple of the baseline */
	/* Nanoseconds, parts per million, bits per second, or packets; of a ratio, as in alert_rule. */
	uint64_t threshold;
	uint32_t needed, among;
	uint64_t hold_ns;
	uint32_t limit; /* alerts in a period, also at once; 0: no limit */
	uint64_t limit_period_ns;
	const char *filter; /* in the text; NULL: all connections */
};

/**
 * Read a rule.
 *
 * @param ret_spec  its filter points into @text, and has not been looked at
 * @param ret_why   on failure: "column 7: ..."
 * @return 0, or -EINVAL
 */
int alert_rule_parse(const char *text, struct alert_spec *ret_spec,
		     char *ret_why, size_t size);

static inline bool alert_is_of_flows(unsigned int metric)
{
	return metric >= ALERT_METRICS;
}

/** The rule as programs compare it, without its slot and its filter. */
struct alert_rule alert_rule_compile(const struct alert_spec *spec);

/** @return a value of samples, in the unit of thresholds */
uint64_t alert_value(unsigned int metric, uint32_t sample);

/* ---- A set of rules ------------------------------------------------------------------- */

enum { ALERT_NAME_MAX = 64, ALERT_ERROR_MAX = 640 };

struct alert_entry {
	char name[ALERT_NAME_MAX];
	char text[ALERT_TEXT_MAX];
	struct alert_spec spec; /* its filter points into the text */
	uint32_t filter;	/* number of the expression, plus 1; 0: none */
	struct filter *tuples;	/* of flows, instead of that; NULL: all */
	uint32_t slot;
	uint32_t life; /* differs from those of rules that had the slot earlier */
	struct alert_count before; /* in the slot, by rules that had it earlier */
	uint64_t delivered;
};

struct alert_set {
	uint32_t n, capacity;
	uint32_t next_slot;
	uint32_t next_life;
	uint8_t lives[ALERT_METRICS];		    /* alert_table.lives */
	uint32_t n_filters;			    /* different expressions */
	const char *expressions[ALERT_FILTERS_MAX]; /* of entries */
	struct filter *filter;	 /* of these; NULL: there are none */
	bool has_flow_rules;	 /* some are about flows, */
	bool keeps_flow_samples; /* and need earlier samples */
	struct alert_entry entries[];
};

/* A rule as a caller has it. */
struct alert_source {
	const char *name; /* NULL: it has none */
	const char *text;
};

/**
 * Make a set of rules, without slots.
 *
 * @param ret_error  begins with the number of the rule: "alerts[2]: column 7: ..."
 * @return 0; -EINVAL: a rule is wrong; -E2BIG: there are too many rules, or expressions;
 *         -ENOMEM
 */
int alert_set_new(const struct alert_source *rules, uint32_t n,
		  struct alert_set **ret_set, char (*ret_error)[ALERT_ERROR_MAX]);

void alert_set_free(struct alert_set *set);

static inline void free_alert_set(struct alert_set **set)
{
	alert_set_free(*set);
}

#define cleanup_alert_set __attribute__((cleanup(free_alert_set)))

/* Before @set replaces @before, which may be NULL. @totals: of each slot, up to now */
void alert_set_succeed(struct alert_set *set, const struct alert_set *before,
		       const struct alert_count totals[ALERT_SLOTS]);

/** @return whether both have the same expressions in the same order */
bool alert_set_has_same_filters(const struct alert_set *one,
				const struct alert_set *other);

/* The rules as programs read them. @epoch: of the filters */
void alert_set_compile(const struct alert_set *set, uint32_t epoch,
		       struct alert_table *ret_table);

/** @return the rule that has a slot, in that life of it; NULL: none of this set */
struct alert_entry *alert_set_find(struct alert_set *set, uint32_t slot,
				   uint32_t life);

/** @return what the rule has counted */
struct alert_count alert_set_count(const struct alert_entry *entry,
				   const struct alert_count totals[ALERT_SLOTS]);

/** @return the same of all rules that are not in @set any more; @set may be NULL */
struct alert_count
alert_set_count_others(const struct alert_set *set,
		       const struct alert_count totals[ALERT_SLOTS]);

/* ---- Rules about flows ------------------------------------------------------------------- */

/*
 * Rules about flows, which look at each record that a flow has: programs know nothing of what they are about.
 * They count, hold and limit as the programs do (bpf/track/alert_rule.h), in the slots of the same rules.
 *
 * A rule and a flow have a state if the rule is silent about the flow, or needs earlier samples of it. When there
 * is no room, the state that was used least recently goes.
 */

enum {
	FLOW_ALERT_WAYS = 8,
	FLOW_ALERT_BUCKETS = 8192,
	FLOW_ALERT_WORDS = 12, /* of the key that is hashed: a rule and a flow */
};

/* The values of a record that rules need. */
struct flow_sample {
	struct filter_tuple tuple;
	uint32_t netns; /* where it was seen */
	uint64_t packets, dropped;
	int64_t boot_ns; /* CLOCK_BOOTTIME: the wall clock may be set */
};

struct flow_alert {
	struct alert_entry *entry;
	uint64_t value;
	uint32_t hits;
};

struct flow_alert_state;
struct flow_alert_limit;

/* Zeroes: there are no rules. */
struct flow_alerts {
	struct flow_alert_state *states;
	struct flow_alert_limit *limits; /* of slots */
	uint32_t secret[FLOW_ALERT_WORDS];
	struct alert_count counts[ALERT_SLOTS];
};

/** Before rules about flows are in use. @return 0; -ENOMEM */
int flow_alerts_open(struct flow_alerts *alerts);

void flow_alerts_close(struct flow_alerts *alerts);

/** @return whether flow_alerts_look() has anything to do for a flow */
static inline bool flow_alerts_are_due(const struct alert_set *set,
				       bool has_dropped)
{
	return set && set->has_flow_rules &&
	       (has_dropped || set->keeps_flow_samples);
}

/* Compare a record with the rules, and report each that it breaks, unless it is silent or at its limit. */
void flow_alerts_look(struct flow_alerts *alerts, struct alert_set *set,
		      const struct flow_sample *sample,
		      void (*report)(const struct flow_alert *alert, void *ctx),
		      void *ctx);

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
