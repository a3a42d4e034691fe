/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Filters in the kernel: ordered rules, of which the first one that matches a packet decides
 * about it. A BPF program that is to be filtered calls judge() of src/bpf/judge.h for each
 * packet. filter_load() loads a copy of the program with a judge() that is generated from
 * the rules, all of them, so that no packet is judged by a part of a filter.
 */
#ifndef NETOBS_FILTER_FILTER_H
#define NETOBS_FILTER_FILTER_H

#include "bpf/types.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

struct filter;
struct filter_template;

enum {
	FILTER_ERROR_MAX = 512,
	FILTER_RULES_MAX = 64, /* without the default */
};

static inline bool rate_is_same(const struct rate *one, const struct rate *other)
{
	return one->interval == other->interval &&
	       (!one->interval || one->mode == other->mode);
}

struct filter_rule {
	const char *expression; /* expression of pcap-filter(7) */
	bool accepts;
	struct rate rate; /* at which packets are sampled that it accepts */
};

struct filter_rules {
	const struct filter_rule *rules;
	uint32_t n;
	bool accepts_others; /* packets that no rule matches */
	struct rate rate;    /* rate of those packets */
};

/* The frames that a program gets. */
struct filter_frames {
	enum link_kind link;
	bool has_wire_len; /* their length on the wire is in skb->cb[2], as in replay */
	const struct rate *rates; /* RATES of them, by number; NULL: nothing is sampled */
	uint32_t features; /* of the program that are on: 1 << enum apart_feature */
};

/**
 * Compile a pcap-filter(7) expression, which accepts what it matches. It may be one that
 * not all kinds of links have, such as one with Ethernet addresses; see filter_check().
 *
 * @param ret_error  libpcap's message and the place in the expression
 * @return 0; -EINVAL: the expression is wrong for all kinds of links; -E2BIG: too long;
 *         -ENOMEM
 */
int filter_new(const char *expression, struct filter **ret_filter,
	       char (*ret_error)[FILTER_ERROR_MAX]);

/**
 * filter_new() of an option `filter`, whose errors are logged. Without an expression (NULL),
 * *@ret_filter stays as it is.
 */
int filter_compile(const char *expression, const struct log *log,
		   struct filter **ret_filter);

/* Sample packets that the expression of filter_new() accepts. */
void filter_sample(struct filter *filter, const struct rate *rate);

/**
 * Compile a list of at most FILTER_RULES_MAX rules.
 *
 * @param ret_error  begins with the number of the rule: "rules[2]: ..."
 * @return as filter_new()
 */
int filter_new_list(const struct filter_rules *list, struct filter **ret_filter,
		    char (*ret_error)[FILTER_ERROR_MAX]);

/** Free the filter; NULL is fine. */
void filter_free(struct filter *filter);

/** @return the expression of filter_new(), which is the filter's */
const char *filter_expression(const struct filter *filter);

/** @return whether the filter is one of filter_new_list(), whose rules count */
bool filter_is_list(const struct filter *filter);

/** @return how many different rates there are, but for that of all packets */
uint32_t filter_rates(const struct filter *filter,
		      struct rate ret_rates[FILTER_RULES_MAX + 1]);

/** @return whether both have been made of the same; NULL is a filter of none */
bool filter_is_same(const struct filter *one, const struct filter *other);

/**
 * Check whether frames of links of this kind can be filtered.
 *
 * @param frames  what to call them in the log
 * @return 0, or -EINVAL, which is logged
 */
int filter_check(const struct filter *filter, enum link_kind link,
		 const char *frames, const struct log *log);

/**
 * @return as judge(), of an Ethernet frame without a tunnel, of which @len bytes are there
 */
uint32_t filter_judge(const struct filter *filter, const void *frame,
		      uint32_t len, uint32_t wire_len);

/**
 * Load a copy of a program with the filter.
 *
 * @param template  whose object is loaded
 * @return a descriptor that the caller closes; -EINVAL: filter_check(), or the program
 *         does not call judge(); -E2BIG: too many instructions, which is logged; -ENOMEM;
 *         others as from bpf(2)
 */
int filter_load(const struct filter *filter,
		const struct filter_template *template,
		const struct filter_frames *frames, const struct log *log);

/**
 * As filter_load(), but judge() returns a bit for each rule that matches: 1 for the first one. A
 * rule that frames of these links cannot be filtered with matches none.
 */
int filter_load_bits(const struct filter *filter,
		     const struct filter_template *template,
		     const struct filter_frames *frames, const struct log *log);

/* ---- Counters of the rules -------------------------------------------------------- */

/*
 * Each rule counts in a slot of its own, RULE_SLOTS of which a context has. They only
 * grow: what a rule has counted is the difference to when it got its slot. A rule that has got
 * another rate is the same rule. Programs with
 * an earlier filter may run for a moment longer, so its slots are taken last, and while such
 * programs are being attached, they are not taken at all.
 */

/**
 * Before @filter replaces @before: rules that are in both keep their counts.
 *
 * @param is_settled  no programs are attached but with @before
 * @param totals      of each slot, up to now
 * @return 0; -EBUSY: earlier filters have all other slots
 */
int filter_succeed(struct filter *filter, const struct filter *before,
		   bool is_settled, const struct rule_count totals[RULE_SLOTS]);

/**
 * Before @filter is used with slots that an earlier process counted in.
 *
 * @param next_slot  from this one on, its rules had none
 * @param reported   of all slots together, what that process has reported; the rest is counted
 *                   as that of earlier filters
 * @param totals     of each slot, up to now
 */
void filter_adopt(struct filter *filter, uint32_t next_slot,
		  const struct rule_count *reported,
		  const struct rule_count totals[RULE_SLOTS]);

/** @return the first slot that no rule has had since they were used last */
uint32_t filter_next_slot(const struct filter *filter);

/**
 * @param rule  in the order of the list; then the default; then all that rules of
 *              earlier filters have counted
 * @return 0; -ENOENT: a number beyond these
 */
int filter_count(const struct filter *filter, uint32_t rule,
		 const struct rule_count totals[RULE_SLOTS],
		 struct rule_count *ret_count);

/* Filters of packets of which only addresses, ports and protocol are known. */

struct filter_tuple {
	uint8_t src[16], dst[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint16_t src_port,
		dst_port; /* ICMP, ICMPv6: an echo's identifier, and type << 8 | code */
	uint8_t proto;
};

/**
 * Check that an expression can match such packets: what tunnels carry is not known of them.
 *
 * @param filter  NULL: all
 * @return 0; -EINVAL, which is logged
 */
int filter_check_tuple(const struct filter *filter, const struct log *log);

/** @param filter  NULL: all. @return whether a packet without data, tags and a tunnel would match */
bool filter_match_tuple(const struct filter *filter,
			const struct filter_tuple *tuple);

#endif
