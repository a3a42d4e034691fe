/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How much traffic a flow really was, given what each point saw of it.
 *
 * A packet may cross several points and must be counted once; packets spread
 * over parallel links cross one each and must all be counted. So:
 *
 * - interfaces stacked on one another (a bond's slave, the bond, a VLAN on it)
 *   pass the same packets from level to level: the largest level counts;
 * - interfaces that are not stacked share the packets of one direction (ECMP):
 *   they add up. Not so packets to a group address on the way out, of which
 *   each interface sends a copy: the largest counts;
 * - the two directions of one namespace, and different namespaces, are stations
 *   of one way: the largest counts.
 *
 * All of it is made of sums and maxima of counters that only grow, so the
 * result only grows: no interval ever takes back what an earlier one reported.
 */
#ifndef NETOBS_LIB_OBSERVE_H
#define NETOBS_LIB_OBSERVE_H

#include "flow_table.h"

struct watch;

/* False when memory for sorting many points is lacking. */
bool observe_total(const struct flow *flow, const struct watch *watch,
		   struct volume *ret_total);

/* The key that all observations of a flow have in common. */
void observe_key(const struct flow_key *key, const struct watch *watch,
		 struct flow_key *ret_key);

#endif
