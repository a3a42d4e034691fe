/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Options records: RFC 7011, 4, sampling, and names of interfaces. */
#ifndef NETOBS_SINKS_IPFIX_REPORTS_H
#define NETOBS_SINKS_IPFIX_REPORTS_H

#include "names.h"
#include "output.h"

struct reports {
	const struct config *config;
	struct sink_host *host;
	struct names names;
	uint64_t start_ms; /* since 1970: since when things are counted */
	struct position not_sent;
	unsigned int next; /* of a round; none is under way: REPORTS_NONE */
};

enum { REPORTS_NONE = -1 };

void reports_open(struct reports *reports, const struct config *config,
		  struct sink_host *host);

/* Send all again. */
void reports_begin(struct reports *reports);

/*
 * Add what is due. 1: all of it; 0: no room, there is more; -EIO: as
 * encoder_add().
 */
int reports_add(struct reports *reports, struct encoder *encoder,
		const struct output_counts *counts);

/* The names that a flow has, unless they were sent: as reports_add(). */
int reports_add_names(struct reports *reports, struct encoder *encoder,
		      const struct netobs_flow *flow);

#endif
