/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The parts of a filter: for the files that implement filter.h. */
#ifndef NETOBS_FILTER_RULE_H
#define NETOBS_FILTER_RULE_H

#include "classic.h"
#include "filter.h"

/*
 * An expression of pcap-filter(7), compiled for each kind of links, or two: "EXPR and inner
 * EXPR", of which the second one is for what a tunnel carries.
 */

enum { LINKS = LINK_NONE + 1 };

struct compiled {
	struct classic programs[LINKS];
	char objections[LINKS][FILTER_ERROR_MAX]; /* why there is no program */
};

struct expression {
	char *text;
	bool has_vlan; /* it has the word, in front of "inner" */
	bool has_inner;
	struct compiled outer; /* matches all packets if there is only the other */
	struct compiled inner;
};

/**
 * Compile an expression, which may be one that not all kinds of links have.
 *
 * @param expression  is zeroed; on failure, too, free it with expression_done()
 * @param ret_error   libpcap's message and the place in the expression
 * @return as filter_new()
 */
int expression_compile(struct expression *expression, const char *text,
		       char (*ret_error)[FILTER_ERROR_MAX]);

void expression_done(struct expression *expression);

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
