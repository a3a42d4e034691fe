// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate.h"

#include "base/clock_ms.h"
#include "base/io.h"
#include "base/backoff.h"
#include "base/outage.h"
#include "rotate_closer.h"
#include "rotate_part.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOK_MS = 1000, /* how often to look whether the file is still there */
	WAIT_MAX_MS = 60000, /* the clock may be set */
	WAITING_MAX = 64,    /* files to be finished, each with a descriptor */
};

struct rotated {
	struct sink_host *host;
	struct rotate_options options;
	struct rotate_names names;
	char *path; /* for people */
	struct rotate_part part;
	struct rotate_last last;
	bool has_records; /* of the part */
	uint64_t begun;	  /* parts */
	size_t left;	  /* to be written of a piece */
	int64_t looked_ms;
	struct backoff retry;
	struct outage outage;

	struct file_closer closer;
};

/* ---- Options ------------------------------------------------------------------- */

bool rotate_parse(struct spec *spec, uint64_t least,
		  struct rotate_options *ret_options)
{
	*ret_options = (struct rotate_options){
		.max_bytes = spec_size(spec, "rotate.bytes", least, 1ULL << 50, 0),
		.interval_ms = spec_duration_ms(spec, "rotate.interval", 1000,
						366ULL * 24 * 60 * 60 * 1000, 0),
		.mode = spec_mode(spec, "mode", 0),
		.keep = (uint32_t)spec_number(spec, "rotate.keep", 0, 1000000, 0),
	};
	if (ret_options->max_bytes || ret_options->interval_ms)
		return true;
	if (ret_options->keep)
		spec_refuse(spec,
			    "rotate.keep needs rotate.bytes or rotate.interval");
	return false;
}

/* ---- The file that is written ------------------------------------------------------ */

static int until_rotation(const struct rotated *rotated)
{
	int64_t interval = (int64_t)rotated->options.interval_ms;

	if (!interval || !rotated->has_records)
		return -1;
	return (int)min_u64(interval - clock_ms(CLOCK_REALTIME) % interval,
			    WAIT_MAX_MS);
}

int rotate_wait_ms(const struct rotated *rotated)
{
	int wait = sooner_ms(backoff_left_ms(&rotated->retry),
			     closer_wait_ms(&rotated->closer));

	return sooner_ms(wait, until_rotation(rotated));
}

static int fail_write(struct rotated *rotated, int err)
{
	outage_note(&rotated->outage, rotated->host->log, rotated->path, err);
	backoff_wait(&rotated->retry, now_ms());
	return -EAGAIN;
}

/* It is empty. */
static int begin_part(struct rotated *rotated)
{
	int err = rotate_part_open(&rotated->part, &rotated->names,
				   rotated->options.mode ?: ROTATE_MODE);

	if (err)
		return err;
	rotated->begun++;
	rotated->has_records = false;
	rotated->left = 0;
	return 0;
}

static int open_part(struct rotated *rotated)
{
	int err = begin_part(rotated);

	if (!err)
		closer_start_over(&rotated->closer);
	return err;
}

/* It gets its final name; another one is not made yet. */
static int end_part(struct rotated *rotated)
{
	struct rotate_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = rotate_part_rename(&rotated->names, rotated->part.start_ms / 1000,
				 rotated->options.suffix ?: "", &rotated->last,
				 file->name);
	if (err) {
		free(file);
		return err;
	}
	file->fd = TAKE_FD(rotated->part.fd);
	rotated->part.size = rotated->part.whole = 0;
	closer_add(&rotated->closer, file);
	return 0;
}

static int rotate_now(struct rotated *rotated)
{
	int err = end_part(rotated);

	/* Without looking for leftovers: there was one moment for that. */
	err = err ?: begin_part(rotated);
	closer_process(&rotated->closer, rotated->part.fd);
	return err;
}

/* Between pieces; the disk is not too far behind. */
static bool may_rotate(const struct rotated *rotated)
{
	return rotated->part.fd >= 0 && rotated->has_records &&
	       !rotated->left && rotated->closer.n_waiting < WAITING_MAX;
}

/* Its first record is of an interval that is over. */
static bool is_old(const struct rotated *rotated)
{
	int64_t interval = (int64_t)rotated->options.interval_ms;

	return interval && clock_ms(CLOCK_REALTIME) / interval !=
				   rotated->part.start_ms / interval;
}

/* ---- Use ----------------------------------------------------------------------- */

/* Another process may have removed it, or the directory, or mounted another one there. */
static bool is_lost(struct rotated *rotated)
{
	int64_t now = now_ms();

	if (rotated->closer.is_lost)
		return true;
	if (now - rotated->looked_ms < LOOK_MS && !rotated->retry.due_ms)
		return false;
	rotated->looked_ms = now;
	return !rotate_part_is_there(&rotated->part, &rotated->names);
}

enum peer_state rotate_prepare(struct rotated *rotated)
{
	enum peer_state state = PEER_READY;
	int err = 0;

	closer_process(&rotated->closer, rotated->part.fd);
	if (!backoff_is_due(&rotated->retry))
		return PEER_AWAY;
	if (rotated->part.fd >= 0 && is_lost(rotated)) {
		close_fd(&rotated->part.fd);
		rotated->part.size = rotated->part.whole = 0;
	}
	rotated->retry.due_ms = 0;
	if (rotated->part.fd < 0) {
		err = open_part(rotated);
		state = PEER_NEW;
		closer_process(&rotated->closer, rotated->part.fd);
	} else if (may_rotate(rotated) && is_old(rotated)) {
		err = rotate_now(rotated);
	}
	if (!err)
		return state;
	fail_write(rotated, err);
	return PEER_AWAY;
}

int rotate_make_room(struct rotated *rotated, size_t len)
{
	uint64_t most = rotated->options.max_bytes;
	int err;

	if (!most || rotated->part.size + len <= most || !may_rotate(rotated))
		return 0;
	err = rotate_now(rotated);
	return err ? fail_write(rotated, err) : 0;
}

/* As much as is taken. */
static int write_left(struct rotated *rotated, const char *piece, size_t len)
{
	struct rotate_part *part = &rotated->part;
	size_t from = len - rotated->left, at = from;
	int err = io_write(part->fd, piece, len, &at);

	if (at > from && !rotated->has_records)
		part->start_ms = clock_ms(CLOCK_REALTIME);
	part->size += at - from;
	rotated->left = len - at;
	if (!err)
		part->whole = part->size;
	return err;
}

int rotate_write(struct rotated *rotated, const void *piece, size_t len)
{
	int err;

	rotated->left = rotated->left ?: len;
	err = write_left(rotated, piece, len);
	if (err)
		return fail_write(rotated, err);
	outage_note(&rotated->outage, rotated->host->log, rotated->path, 0);
	backoff_reset(&rotated->retry);
	return 0;
}

void rotate_written(struct rotated *rotated, struct position end)
{
	rotated->has_records = true;
	closer_written(&rotated->closer, end);
}

const struct outage *rotate_outage(const struct rotated *rotated)
{
	return &rotated->outage;
}

uint64_t rotate_begun(const struct rotated *rotated)
{
	return rotated->begun;
}

void rotate_counters(const struct rotated *rotated, sink_counter_fn *take,
		     void *ctx)
{
	take(ctx, "files", rotated->closer.finished);
	take(ctx, "files_removed", rotated->closer.removed);
}

/* ---- Life ---------------------------------------------------------------------- */

static int set_up(struct rotated *rotated, const char *path)
{
	int err = rotate_names_init(&rotated->names, path);

	err = err ?: io_make_parents(path);
	if (err)
		return err;
	rotated->path = strdup(path);
	if (!rotated->path)
		return -ENOMEM;
	err = closer_open(&rotated->closer, rotated->host, &rotated->names,
			  path, rotated->options.keep,
			  (int64_t)rotated->options.sync_ms);
	return err ?: open_part(rotated);
}

int rotate_open(const char *path, const struct rotate_options *options,
		struct sink_host *host, struct rotated **ret_rotated)
{
	struct rotated *rotated = calloc(1, sizeof(*rotated));
	int err;

	if (!rotated)
		return -ENOMEM;
	rotated->host = host;
	rotated->options = *options;
	rotated->part.fd = -1;
	err = set_up(rotated, path);
	if (err) {
		log_error(host->log, "cannot write to %s: %s", path,
			  err == -EBUSY ? "another process does" :
					  strerror(-err));
		rotate_close(rotated);
		return err;
	}
	closer_process(&rotated->closer, rotated->part.fd);
	*ret_rotated = rotated;
	return 0;
}

/* What is not whole of it was not acknowledged. */
static void finish_part(struct rotated *rotated)
{
	struct rotate_part *part = &rotated->part;
	int err = 0;

	if (part->fd < 0)
		return;
	if (part->size > part->whole && ftruncate(part->fd, (off_t)part->whole))
		err = -errno; /* the next start cuts it */
	if (!err && rotated->has_records)
		err = end_part(rotated);
	else if (!err)
		rotate_part_remove(part, &rotated->names);
	if (err)
		outage_note(&rotated->outage, rotated->host->log, rotated->path,
			    err);
	close_fd(&part->fd);
}

void rotate_close(struct rotated *rotated)
{
	if (!rotated)
		return;
	finish_part(rotated);
	closer_close(&rotated->closer);
	free(rotated->path);
	free(rotated);
}
