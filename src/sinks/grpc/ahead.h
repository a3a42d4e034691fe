/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records that the collector has, although one before them is not settled: they are
 * not sent again when the spool has them again.
 */
#ifndef NETOBS_SINKS_GRPC_AHEAD_H
#define NETOBS_SINKS_GRPC_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

enum { AHEAD_MAX = 32 }; /* more are forgotten, and sent twice */

struct ahead {
	struct {
		uint64_t from, end; /* as struct position counts records */
	} ranges[AHEAD_MAX];
	uint32_t n;
};

void ahead_add(struct ahead *ahead, uint64_t from, uint64_t end);

/* The record that ends at @end is one of them. */
bool ahead_has(const struct ahead *ahead, uint64_t end);

/* All up to @end is settled. */
void ahead_settle(struct ahead *ahead, uint64_t end);

#endif
