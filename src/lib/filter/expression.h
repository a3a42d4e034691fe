/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * An expression of pcap-filter(7), compiled for each kind of links, or two: "EXPR and inner
 * EXPR", of which the second one is for what a tunnel carries.
 */
#ifndef NETOBS_FILTER_EXPRESSION_H
#define NETOBS_FILTER_EXPRESSION_H

#include "classic.h"
#include "filter.h"

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

#endif
