/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The states of a directory that a crash of the host may leave, after any part of the operations on
 * it. Only a successful sync makes data durable: a sync of a file the data written to it before, a
 * sync of the directory its names. After a failed sync, Linux takes the data for saved, so it stays in
 * doubt until it is written again.
 */
#ifndef HARNESS_LIB_CRASH_H
#define HARNESS_LIB_CRASH_H

#include "lib_disk.h"

enum crash_kind {
	CRASH_ALL,    /* everything was done: as when only the process dies */
	CRASH_TORN,   /* but the last write only in part */
	CRASH_SYNCED, /* nothing that was not made sure */
	CRASH_MIXED,  /* some of it: any write, any part of one, any name */
	CRASH_KINDS,
};

/* Fill the empty @dir with a state that a crash may leave after the first @n operations of @log. */
void crash_make(const struct disk_log *log, size_t n, enum crash_kind kind,
		unsigned int seed, const char *dir);

#endif
