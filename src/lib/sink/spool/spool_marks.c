// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool.h"

#include "base/crc32c.h"
#include "base/own_file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct mark {
	uint64_t number;
	struct position end;
	struct position acked;
	uint32_t crc; /* CRC-32C of what precedes */
	uint32_t reserved;
};

static uint32_t crc_of_mark(const struct mark *mark)
{
	return crc32c(0, mark, offsetof(struct mark, crc));
}

static int open_marks(const struct spool *spool, int flags)
{
	const char *why;

	return own_file_open(spool->dir->fd, "marks", flags, &why);
}

static off_t place_of(uint64_t number)
{
	return (off_t)(number % 2 * sizeof(struct mark));
}

/* A write within a page is done or not when the process is killed. */
static int write_mark(const struct spool *spool, uint64_t number)
{
	struct mark mark = { .number = number,
			     .end = spool->tail,
			     .acked = spool->acked };
	cleanup_fd int fd = open_marks(spool, O_WRONLY | O_CREAT);

	if (fd < 0)
		return fd;
	mark.crc = crc_of_mark(&mark);
	errno = EIO; /* of a short write */
	return pwrite(fd, &mark, sizeof(mark), place_of(number)) == sizeof(mark) ?
		       0 :
		       -errno;
}

/* False: there is none of that number. */
static bool read_mark(const struct spool *spool, uint64_t number,
		      struct mark *ret_mark)
{
	cleanup_fd int fd = open_marks(spool, O_RDONLY);
	struct mark mark;

	if (fd < 0 ||
	    pread(fd, &mark, sizeof(mark), place_of(number)) != sizeof(mark) ||
	    mark.crc != crc_of_mark(&mark) || mark.number != number)
		return false;
	*ret_mark = mark;
	return true;
}

static void limit_reader(struct spool *spool, uint64_t number)
{
	spool->marked = spool->tail;
	spool->marked_number = number;
	spool->is_limited = true;
	spool->is_unmarked = true; /* also when the limit is lifted */
}

void spool_forget_marks(struct spool *spool)
{
	spool->is_unmarked = true;
	if (spool->dir)
		unlinkat(spool->dir->fd, "marks", 0);
}

void spool_lift_limit(struct spool *spool)
{
	spool->is_limited = false;
}

static void note_mark_result(struct spool *spool, int err)
{
	const struct log *log = spool->options.log;

	if (err)
		outage_log(&spool->unmarkable, log, NETOBS_LOG_WARNING, "",
			   "spool %s: cannot keep a commit: %s; after a kill of the process, records may be lost or sent twice",
			   spool_name(spool), strerror(-err));
	else
		outage_end(&spool->unmarkable, log, NETOBS_LOG_WARNING,
			   "spool %s: commits are kept again", spool_name(spool));
}

/* The owner commits even if this fails: a kill then loses records that are in no file. */
int spool_mark(struct spool *spool, uint64_t number)
{
	int err;

	if (!spool->dir)
		return 0;
	err = spool_write_out(spool);
	err = write_mark(spool, number) ?: err;
	note_mark_result(spool, err);
	limit_reader(spool, number);
	return err;
}

bool spool_is_at_mark(const struct spool *spool)
{
	return spool->marked_number && spool->marked.seq == spool->tail.seq;
}

void spool_extend_mark(struct spool *spool)
{
	spool_mark(spool, spool->marked_number);
}

/* ---- Returning to a mark ------------------------------------------------------------ */

/* The first segment that has nothing before @end, and all that follow. */
static void remove_segments(struct spool *spool, struct position end)
{
	struct segment **link = &spool->oldest, *segment;

	spool->newest = NULL;
	while (*link && position_is_before((*link)->first, end)) {
		spool->newest = *link;
		link = &(*link)->next;
	}
	while ((segment = *link)) {
		*link = segment->next;
		spool->size -= segment->size;
		spool_dir_remove(spool->dir, segment->first.seq);
		segment_free(segment);
	}
}

/* Of the newest one, what is behind @end. */
static int cut_segment(struct spool *spool, struct position end)
{
	struct segment *segment = spool->newest;
	uint64_t size;
	int err;

	if (!segment || !position_is_before(end, segment->end))
		return 0;
	size = segment->size;
	err = segment_cut(segment, &spool->window, end);
	spool->size -= size - segment->size;
	return err;
}

static int cut_spool(struct spool *spool, struct position end)
{
	int err;

	remove_segments(spool, end);
	err = cut_segment(spool, end);
	if (err)
		return err;
	spool->recovered = position_sub(end, spool->acked);
	spool->tail = end;
	if (!position_is_before(end, spool->durable))
		return 0;
	/* Else the next process would look for what was durable. */
	spool->durable = spool->noted.durable = end;
	return spool_dir_write_progress(spool->dir->fd, &spool->noted);
}

/* It may know of more than what was noted on the disk. */
static void take_acked(struct spool *spool, struct position acked)
{
	if (!position_is_before(spool->acked, acked) ||
	    position_is_before(spool->tail, acked))
		return;
	spool->recovered = position_sub(spool->tail, acked);
	spool->acked = acked;
	spool_remove_acked(spool);
}

static int return_to_mark(struct spool *spool, const struct mark *mark)
{
	struct position end = mark->end;
	int err = 0;

	/* Records behind the mark that a full spool has sent nevertheless are sent once more. */
	if (position_is_before(end, spool->acked))
		end = spool->acked;
	if (position_is_before(end, spool->tail))
		err = cut_spool(spool, end);
	take_acked(spool, mark->acked);
	spool_rewind(spool);
	return err;
}

int spool_return_to(struct spool *spool, uint64_t number)
{
	struct mark mark;
	int err = 0;

	if (!spool->dir)
		return 0;
	if (read_mark(spool, number, &mark))
		err = return_to_mark(spool, &mark);
	limit_reader(spool, number);
	return err ?: write_mark(spool, number);
}
