/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a crash of the host may leave of a directory, after any part of what was done
 * to it. Only a sync that succeeded makes sure: of a file, of what was written to it
 * before; of the directory, of its names. After one that failed, what it was to save
 * is in doubt for ever, as Linux takes it for saved: it has to be done again.
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

/* Make @dir, which is empty, what is left of the first @n of @log. */
void crash_make(const struct disk_log *log, size_t n, enum crash_kind kind,
		unsigned int seed, const char *dir);

#endif
