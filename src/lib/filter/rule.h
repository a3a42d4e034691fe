/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The parts of a filter: for the files that implement filter.h. */
#ifndef NETOBS_FILTER_RULE_H
#define NETOBS_FILTER_RULE_H

#include "expression.h"
#include "filter.h"

struct rule {
	struct expression expression; /* the default has none */
	bool accepts;
	struct rate rate;
	uint32_t slot;
	struct rule_count before; /* in the slot, by rules that had it earlier */
};

struct filter {
	bool is_list; /* made by filter_new_list() */
	uint32_t next_slot;
	struct rule_count reported; /* reported for all slots by an earlier process */
	bool is_busy[RULE_SLOTS]; /* slots of earlier filters that may still count */
	uint32_t n;		  /* with the default, which is the last one */
	struct rule rules[];	  /* at least one */
};

/* @return whether packets of both count as those of one rule; at which rates does not matter */
bool rule_is_same(const struct rule *one, const struct rule *other);

/**
 * @param rates  as in struct filter_frames
 * @return what judge() returns if the rule decides
 */
uint32_t rule_judgement(const struct rule *rule, const struct rate *rates);

#endif
