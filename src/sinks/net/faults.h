/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Log a fault once while it lasts, also where several alternate: a line about each,
 * and one when all is well again.
 */
#ifndef NETOBS_SINKS_NET_FAULTS_H
#define NETOBS_SINKS_NET_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

enum { FAULTS_MAX = 8 };

struct faults {
	uint64_t told[FAULTS_MAX]; /* hashes of the texts that were logged last */
	unsigned int n;		   /* since the last time that all was well */
};

/* True: log it now. It has not been logged since the last recovery. */
bool faults_begin(struct faults *faults, const char *text);

/* True: a fault was logged, so log the recovery. */
bool faults_end(struct faults *faults);

#endif
