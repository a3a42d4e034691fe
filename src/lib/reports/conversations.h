/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reports of conversations by any number of hosts, and the edges of the service map that they make.
 *
 * A conversation has the addresses and ports from before all NAT, as far as any host knows them. It
 * counts once, however many hosts and sides of a NAT report it: in each direction by the
 * host that has seen most of its packets, which is the sender's, unless that has lost reports.
 */
#ifndef NETOBS_REPORTS_CONVERSATIONS_H
#define NETOBS_REPORTS_CONVERSATIONS_H

#include <netobs/services.h>

#include "edges.h"
#include "report.h"

struct conversations;

/** @return yours; NULL: no memory */
struct conversations *conversations_new(void);
void conversations_free(struct conversations *all); /* NULL is fine */

/**
 * Find the number of a reporter, from 0 on.
 *
 * @param name  for people; of the first call
 * @return 0; -ENOMEM
 */
int conversations_reporter(struct conversations *all, const char *identity,
			   const char *name, uint32_t *ret_reporter);

/** @param reporter  of conversations_reporter() */
const char *conversations_reporter_name(const struct conversations *all,
					uint32_t reporter);

/** @return the only name known at an end, valid until conversations_add(); NULL: none, or several */
const char *conversations_name(const struct conversations *all,
			       const struct edge_sum *sum, enum edge_end end,
			       enum name_kind kind);

/** @return 0; -ENOMEM */
int conversations_add(struct conversations *all, uint32_t reporter,
		      const struct service_report *report);

/**
 * Add all conversations to their edges, and remove them. Which ends accept connections, which tuples
 * are of NAT, and the totals stay known.
 *
 * @return 0; -ENOMEM: some are missing
 */
int conversations_take(struct conversations *all, struct edges *edges);

/** @return the totals of all reports: what of them is counted here, and of records what the caller adds */
struct netobs_services_stats *conversations_totals(struct conversations *all);

#endif
