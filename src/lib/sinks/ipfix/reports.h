/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Options records: RFC 7011, 4, sampling, and names of interfaces. */
#ifndef NETOBS_SINKS_IPFIX_REPORTS_H
#define NETOBS_SINKS_IPFIX_REPORTS_H

#include "base/slots.h"
#include "ipfix.h"

#include <stdbool.h>
#include <stdint.h>

/* With more interfaces, all names are sent again now and then. */
enum { NAMES_MAX = 2048 };

/* A name that the collector has received, by the first two members. */
struct name {
	uint32_t ifindex;
	uint32_t netns_inode;
	char text[sizeof(((struct record_interface *)NULL)->name)];
};

/** @return whether the collector lacks the name of a point: send @ret_name */
bool names_is_new(const struct slots *names, const struct netobs_point *point,
		  struct name *ret_name);

/* Note a name that was sent. */
void names_note(struct slots *names, const struct name *name);

struct reports {
	const struct config *config;
	struct sink_host *host;
	struct slots names;
	uint64_t start_ms; /* since 1970: the start of the counts */
	struct position not_sent;
	unsigned int next; /* of a round; REPORTS_NONE: none is under way */
};

enum { REPORTS_NONE = -1 };

void reports_open(struct reports *reports, const struct config *config,
		  struct sink_host *host);

/* Send all again. */
void reports_begin(struct reports *reports);

/** Add the records that are due. @return 1; 0: no room for all; -EIO: as encoder_add() */
int reports_add(struct reports *reports, struct encoder *encoder,
		const struct output_counts *counts);

/** Add the names of a flow, unless they were sent. @return as reports_add() */
int reports_add_names(struct reports *reports, struct encoder *encoder,
		      const struct netobs_flow *flow);

/*
 * Templates are sent at the start of a session; over UDP, where they may be lost or forgotten, also
 * at intervals.
 */

struct refresh {
	uint64_t interval_ms;
	bool repeats;
	unsigned int rounds; /* rounds of this session */
	int64_t due_ms;	     /* the next one */
};

void refresh_start(struct refresh *refresh, int64_t now_ms);

bool refresh_is_due(const struct refresh *refresh, int64_t now_ms);

/* Call when all templates were sent. */
void refresh_done(struct refresh *refresh, int64_t now_ms);

#endif
