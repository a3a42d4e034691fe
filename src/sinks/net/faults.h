/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What is wrong is told once while it lasts, also where it changes between several
 * things: a line about each, and one when all is well again.
 */
#ifndef NETOBS_SINKS_NET_FAULTS_H
#define NETOBS_SINKS_NET_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

enum { FAULTS_MAX = 8 };

struct faults {
	uint64_t told[FAULTS_MAX]; /* hashes of what was told, the last ones */
	unsigned int n;		   /* since the last time that all was well */
};

/* True: it was not told yet, and shall be now. */
bool faults_begin(struct faults *faults, const char *text);

/* True: something was told, so shall be that it is over. */
bool faults_end(struct faults *faults);

#endif
