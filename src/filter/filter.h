/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Filters in the kernel. A BPF program that is to be filtered calls judge() of
 * src/bpf/judge.h for each packet. filter_load() loads a copy of the program with a judge()
 * that is generated from a filter's expression.
 */
#ifndef NETOBS_FILTER_FILTER_H
#define NETOBS_FILTER_FILTER_H

#include "bpf/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_program;
struct filter;

enum { FILTER_ERROR_MAX = 512 };

/* The frames that a program gets. */
struct filter_frames {
	enum link_kind link;
	bool has_wire_len; /* their length on the wire is in skb->cb[2], as in replay */
};

/**
 * Compile a pcap-filter(7) expression. It may be one that not all kinds of links have, such
 * as one with Ethernet addresses; see filter_objection().
 *
 * @param ret_error  libpcap's message and the place in the expression
 * @return 0; -EINVAL: the expression is wrong for all kinds of links; -E2BIG: too long;
 *         -ENOMEM
 */
int filter_new(const char *expression, struct filter **ret_filter,
	       char (*ret_error)[FILTER_ERROR_MAX]);

/** Free the filter; NULL is fine. */
void filter_free(struct filter *filter);

/** @return the expression, which is the filter's */
const char *filter_expression(const struct filter *filter);

/** @return NULL, or why frames of links of this kind cannot be filtered */
const char *filter_objection(const struct filter *filter, enum link_kind link);

/** @return whether the filter accepts an Ethernet frame, of which @len bytes are there */
bool filter_accepts(const struct filter *filter, const void *frame,
		    uint32_t len, uint32_t wire_len);

/**
 * Load a copy of a program with the filter.
 *
 * @param program  of an object that is loaded
 * @return a descriptor that the caller closes; -EINVAL: filter_objection(), or the program
 *         does not call judge(); -E2BIG: too many instructions; -ENOMEM; others as
 *         from bpf(2)
 */
int filter_load(const struct filter *filter, const struct bpf_program *program,
		const struct filter_frames *frames);

#endif
