/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The rules of a context, with the slots that they count in. A rule that is in the next set,
 * too, with the same name and text, keeps its slot.
 */
#ifndef NETOBS_ALERTS_ALERT_SET_H
#define NETOBS_ALERTS_ALERT_SET_H

#include "filter/filter.h"
#include "rule.h"

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

#endif
