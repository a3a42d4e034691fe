// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "roll.h"

#include "base/clock_ms.h"
#include "base/dirs.h"
#include "base/backoff.h"
#include "base/outage.h"
#include "roll_finisher.h"
#include "roll_part.h"
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

struct roll {
	struct sink_host *host;
	struct roll_options options;
	struct roll_names names;
	char *path; /* for people */
	struct roll_part part;
	struct roll_last last;
	bool has_records; /* of the part */
	uint64_t begun;	  /* parts */
	size_t left;	  /* to be written of a piece */
	int64_t looked_ms;
	struct backoff retry;
	struct outage outage;

	struct finisher finisher;
};

/* ---- Options ------------------------------------------------------------------- */

bool roll_parse(struct spec *spec, uint64_t least,
		struct roll_options *ret_options)
{
	*ret_options = (struct roll_options){
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

static int until_turn(const struct roll *roll)
{
	int64_t interval = (int64_t)roll->options.interval_ms;

	if (!interval || !roll->has_records)
		return -1;
	return (int)min_u64(interval - clock_ms(CLOCK_REALTIME) % interval,
			    WAIT_MAX_MS);
}

int roll_wait_ms(const struct roll *roll)
{
	int wait = sooner_ms(backoff_left_ms(&roll->retry),
			     finisher_wait_ms(&roll->finisher));

	return sooner_ms(wait, until_turn(roll));
}

static int fail(struct roll *roll, int err)
{
	outage_note(&roll->outage, roll->host->log, roll->path, err);
	backoff_wait(&roll->retry, now_ms());
	return -EAGAIN;
}

/* It is empty. */
static int begin_part(struct roll *roll)
{
	int err = roll_part_open(&roll->part, &roll->names,
				 roll->options.mode ?: ROLL_MODE);

	if (err)
		return err;
	roll->begun++;
	roll->has_records = false;
	roll->left = 0;
	return 0;
}

static int open_part(struct roll *roll)
{
	int err = begin_part(roll);

	if (err)
		return err;
	roll->finisher.next->tidy = true; /* it may have found one that was there */
	finisher_forget(&roll->finisher);
	return 0;
}

/* It gets its final name; another one is not made yet. */
static int turn(struct roll *roll)
{
	struct roll_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = roll_part_rename(&roll->names, roll->part.start_ms / 1000,
			       roll->options.suffix ?: "", &roll->last,
			       file->name);
	if (err) {
		free(file);
		return err;
	}
	file->fd = TAKE_FD(roll->part.fd);
	roll->part.size = roll->part.whole = 0;
	finisher_add(&roll->finisher, file);
	return 0;
}

static int turn_and_go_on(struct roll *roll)
{
	int err = turn(roll);

	/* Without looking for leftovers: there was one moment for that. */
	err = err ?: begin_part(roll);
	finisher_tend(&roll->finisher, roll->part.fd);
	return err;
}

/* Between pieces; the disk is not too far behind. */
static bool may_turn(const struct roll *roll)
{
	return roll->part.fd >= 0 && roll->has_records && !roll->left &&
	       roll->finisher.n_waiting < WAITING_MAX;
}

/* Its first record is of an interval that is over. */
static bool is_old(const struct roll *roll)
{
	int64_t interval = (int64_t)roll->options.interval_ms;

	return interval && clock_ms(CLOCK_REALTIME) / interval !=
				   roll->part.start_ms / interval;
}

/* ---- Use ----------------------------------------------------------------------- */

/* Another process may have removed it, or the directory, or mounted another one there. */
static bool is_lost(struct roll *roll)
{
	int64_t now = now_ms();

	if (roll->finisher.is_lost)
		return true;
	if (now - roll->looked_ms < LOOK_MS && !roll->retry.due_ms)
		return false;
	roll->looked_ms = now;
	return !roll_part_is_there(&roll->part, &roll->names);
}

enum peer_state roll_prepare(struct roll *roll)
{
	enum peer_state state = PEER_READY;
	int err = 0;

	finisher_tend(&roll->finisher, roll->part.fd);
	if (!backoff_is_due(&roll->retry))
		return PEER_AWAY;
	if (roll->part.fd >= 0 && is_lost(roll)) {
		close_fd(&roll->part.fd);
		roll->part.size = roll->part.whole = 0;
	}
	roll->retry.due_ms = 0;
	if (roll->part.fd < 0) {
		err = open_part(roll);
		state = PEER_NEW;
		finisher_tend(&roll->finisher, roll->part.fd);
	} else if (may_turn(roll) && is_old(roll)) {
		err = turn_and_go_on(roll);
	}
	if (!err)
		return state;
	fail(roll, err);
	return PEER_AWAY;
}

int roll_make_room(struct roll *roll, size_t len)
{
	uint64_t most = roll->options.max_bytes;
	int err;

	if (!most || roll->part.size + len <= most || !may_turn(roll))
		return 0;
	err = turn_and_go_on(roll);
	return err ? fail(roll, err) : 0;
}

/* As much as is taken. */
static int write_left(struct roll *roll, const char *end)
{
	struct roll_part *part = &roll->part;

	while (roll->left) {
		ssize_t n = write(part->fd, end - roll->left, roll->left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!roll->has_records)
			part->start_ms = clock_ms(CLOCK_REALTIME);
		part->size += (size_t)n;
		roll->left -= (size_t)n;
	}
	part->whole = part->size;
	return 0;
}

int roll_write(struct roll *roll, const void *piece, size_t len)
{
	int err;

	roll->left = roll->left ?: len;
	err = write_left(roll, (const char *)piece + len);
	if (err)
		return fail(roll, err);
	outage_note(&roll->outage, roll->host->log, roll->path, 0);
	backoff_reset(&roll->retry);
	return 0;
}

void roll_written(struct roll *roll, struct mark end)
{
	roll->has_records = true;
	finisher_written(&roll->finisher, end);
}

uint64_t roll_begun(const struct roll *roll)
{
	return roll->begun;
}

void roll_counters(const struct roll *roll, sink_counter_fn *take, void *ctx)
{
	take(ctx, "files", roll->finisher.finished);
	take(ctx, "files_removed", roll->finisher.removed);
}

/* ---- Life ---------------------------------------------------------------------- */

static int set_up(struct roll *roll, const char *path)
{
	int err = roll_names_init(&roll->names, path);

	err = err ?: dirs_make_parents(path);
	if (err)
		return err;
	roll->path = strdup(path);
	if (!roll->path)
		return -ENOMEM;
	err = finisher_open(&roll->finisher, roll->host, &roll->names, path,
			    roll->options.keep, (int64_t)roll->options.sync_ms);
	return err ?: open_part(roll);
}

int roll_open(const char *path, const struct roll_options *options,
	      struct sink_host *host, struct roll **ret_roll)
{
	struct roll *roll = calloc(1, sizeof(*roll));
	int err;

	if (!roll)
		return -ENOMEM;
	roll->host = host;
	roll->options = *options;
	roll->part.fd = -1;
	err = set_up(roll, path);
	if (err) {
		log_error(host->log, "cannot write to %s: %s", path,
			  err == -EBUSY ? "another process does" :
					  strerror(-err));
		roll_close(roll);
		return err;
	}
	finisher_tend(&roll->finisher, roll->part.fd);
	*ret_roll = roll;
	return 0;
}

/* What is not whole of it was not acknowledged. */
static void finish_part(struct roll *roll)
{
	struct roll_part *part = &roll->part;
	int err = 0;

	if (part->fd < 0)
		return;
	if (part->size > part->whole && ftruncate(part->fd, (off_t)part->whole))
		err = -errno; /* the next start cuts it */
	if (!err && roll->has_records)
		err = turn(roll);
	else if (!err)
		roll_part_remove(part, &roll->names);
	if (err)
		outage_note(&roll->outage, roll->host->log, roll->path, err);
	close_fd(&part->fd);
}

void roll_close(struct roll *roll)
{
	if (!roll)
		return;
	finish_part(roll);
	finisher_close(&roll->finisher);
	free(roll->path);
	free(roll);
}
