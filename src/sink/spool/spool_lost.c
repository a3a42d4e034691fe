// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A spool's files that another process removed, with their directory or without it: what is
 * open can still be read, so it is written again.
 */
#include "spool.h"

#include "spool_part.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static bool has_name(const struct segment *segment)
{
	struct stat info;

	return !fstat(segment->fd, &info) && info.st_nlink;
}

/* Nothing is added to it: what it has is copied as it is now. */
static void lose(struct segment *segment)
{
	segment_write_out(segment);
	segment->is_lost = true;
	segment->is_closed = true;
	segment->is_named = false;
	segment->is_in_doubt = false;
	segment->synced = 0;
	segment->durable = segment->first;
}

/* How many records that wait are in them. */
static uint64_t lose_segments(struct spool *spool, bool is_dir_lost)
{
	uint64_t records = 0;

	for (struct segment *segment = spool->oldest; segment;
	     segment = segment->next) {
		if (segment->fd < 0 || segment->is_lost ||
		    (!is_dir_lost && has_name(segment)))
			continue;
		lose(segment);
		records += mark_sub(segment->end, segment->first).seq;
	}
	return records;
}

static void say_lost(const struct spool *spool, uint64_t records, int err)
{
	if (err)
		log_warning(spool->options.log,
			    "spool %s: the directory was removed and cannot be created again: %s; trying again",
			    spool_name(spool), strerror(-err));
	else
		log_warning(spool->options.log,
			    "spool %s: files in it were removed; %llu records are written again",
			    spool_name(spool), (unsigned long long)records);
}

void spool_find_lost(struct spool *spool)
{
	struct spool_dir *dir = spool->dir;
	bool is_dir_lost = !spool_dir_is_there(dir, spool->path);
	int err = is_dir_lost ? spool_dir_renew(dir, spool->path) : 0;
	uint64_t records = lose_segments(spool, is_dir_lost);

	if (records || (is_dir_lost && !(err && dir->is_gone)))
		say_lost(spool, records, err);
	dir->is_gone = err;
	if (!records && !is_dir_lost)
		return;
	spool->noted = (struct spool_progress){ 0 };
	spool->durable = spool->acked;
	spool_find_durable(spool);
}
