/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Options records: RFC 7011, 4, sampling, and names of interfaces. */
#ifndef NETOBS_SINKS_IPFIX_REPORTS_H
#define NETOBS_SINKS_IPFIX_REPORTS_H

#include "record.h"
#include "output.h"

/* With more interfaces than half of this, all are sent again from time to time. */
enum { NAMES_SLOTS = 4096 };

struct name {
	uint32_t ifindex; /* 0: no name is here */
	uint32_t netns_inode;
	char text[RECORD_NAME_SIZE];
};

/* Those that the collector has received. */
struct names {
	struct name slots[NAMES_SLOTS];
	unsigned int n;
};

void names_clear(struct names *names);

/* The collector lacks the name of a point, or has another one: send @ret_name. */
bool names_is_new(struct names *names, const struct netobs_point *point,
		  struct name *ret_name);

/* It was sent. */
void names_note(struct names *names, const struct name *name);

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
