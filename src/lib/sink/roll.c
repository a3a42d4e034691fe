// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "roll.h"

#include "fault.h"
#include "line_out.h"
#include "packer.h"
#include "roll_part.h"
#include "roll_work.h"
#include "util.h"
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
	RETRY_MS = 1000,
	LOOK_MS = 1000, /* how often to look whether the file is still there */
	WAIT_MAX_MS = 60000, /* the clock may be set */
	WAITING_MAX = 64,    /* files to be finished, each with a descriptor */
};

struct roll {
	struct sink_host *host;
	struct roll_options options;
	struct roll_names names;
	char *path, *finished_path; /* for people */
	struct packer packer;
	struct roll_part part;
	struct roll_last last;
	const char *packed; /* what is left to be written of the lines */
	size_t packed_len;
	int64_t looked_ms;
	int64_t retry_ms; /* not before this time; 0: at once */
	struct fault fault;

	struct worker *worker;
	struct roll_work *next_work; /* what is to be done next */
	size_t n_waiting;	     /* files in it */
	int64_t retry_work_ms;
	struct fault work_fault;
	uint64_t finished, removed; /* files */
};

static int64_t clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / NSEC_PER_MSEC;
}

/* ---- Options ------------------------------------------------------------------- */

bool roll_parse(struct spec *spec, struct roll_options *ret_options)
{
	static const char *const compress[] = { "none", "gzip", "zstd", NULL };
	int choice;

	*ret_options = (struct roll_options){
		.max_bytes =
			spec_size(spec, "rotate.bytes", 1 << 20, 1ULL << 50, 0),
		.interval_ms = spec_duration_ms(spec, "rotate.interval", 1000,
						366ULL * 24 * 60 * 60 * 1000, 0),
		.keep = (uint32_t)spec_number(spec, "rotate.keep", 0, 1000000, 0),
		.level = (int)spec_number(spec, "compress.level", 1, 22, 0),
	};
	choice = spec_choice(spec, "compress", compress, 0);
	if (choice)
		ret_options->compress = compress[choice];
	if (!ret_options->max_bytes && !ret_options->interval_ms) {
		if (ret_options->keep || choice || ret_options->level)
			spec_refuse(
				spec,
				"rotate.keep and compress need rotate.bytes or rotate.interval");
		return false;
	}
	if (!spec->target ||
	    !strncmp(spec->target, LINE_OUT_UNIX, strlen(LINE_OUT_UNIX)))
		spec_refuse(spec, "only a file can be rotated");
	return true;
}

static const char *suffix_of(const struct roll_options *options)
{
	if (!options->compress)
		return "";
	return strcmp(options->compress, "gzip") ? ".zst" : ".gz";
}

/* ---- Finishing files ------------------------------------------------------------- */

static struct roll_work *make_work(const struct roll *roll)
{
	struct roll_work *work = calloc(1, sizeof(*work));

	if (work) {
		work->names = &roll->names;
		work->keep = roll->options.keep;
	}
	return work;
}

/* What could not be done is done again, before the rest. */
static void keep_for_later(struct roll *roll, struct roll_work *done)
{
	struct roll_work *next = roll->next_work;
	struct roll_file **end = &done->files;

	while (*end)
		end = &(*end)->next;
	*end = TAKE_PTR(next->files);
	next->files = TAKE_PTR(done->files);
	next->tidy |= done->tidy;
	roll->n_waiting = 0;
	for (struct roll_file *file = next->files; file; file = file->next)
		roll->n_waiting++;
	roll->retry_work_ms = clock_ms(CLOCK_MONOTONIC) + RETRY_MS;
}

static void take_result(struct roll *roll, struct roll_work *work)
{
	fault_note(&roll->work_fault, roll->host->log, roll->finished_path,
		   work->err);
	roll->finished += work->finished;
	roll->removed += work->removed;
	roll->retry_work_ms = 0;
	if (work->err)
		keep_for_later(roll, work);
	roll_work_free(work);
}

static bool has_work(const struct roll *roll)
{
	return roll->next_work->files || roll->next_work->tidy;
}

/* Take what is done, and have done what is to be done. */
static void tend_worker(struct roll *roll)
{
	struct roll_work *work = worker_take(roll->worker);
	int err;

	if (work)
		take_result(roll, work);
	if (!has_work(roll) || worker_is_busy(roll->worker) ||
	    clock_ms(CLOCK_MONOTONIC) < roll->retry_work_ms)
		return;
	work = make_work(roll);
	if (!work)
		return;
	err = worker_start(roll->worker, roll->next_work);
	if (err) {
		roll_work_free(work);
		roll->retry_work_ms = clock_ms(CLOCK_MONOTONIC) + RETRY_MS;
		fault_note(&roll->work_fault, roll->host->log,
			   roll->finished_path, err);
		return;
	}
	roll->next_work = work;
	roll->n_waiting = 0;
}

/* ---- The file that is written ------------------------------------------------------ */

static int64_t until_turn(const struct roll *roll)
{
	int64_t interval = (int64_t)roll->options.interval_ms;

	if (!interval || !roll->part.size)
		return INT64_MAX;
	return interval - clock_ms(CLOCK_REALTIME) % interval;
}

/* @at_ms: 0: never. */
static int64_t until(int64_t at_ms)
{
	int64_t left = at_ms - clock_ms(CLOCK_MONOTONIC);

	if (!at_ms)
		return INT64_MAX;
	return left > 0 ? left : 0;
}

/* Be called again when it is time to try, or to turn. */
static void arm(struct roll *roll)
{
	int64_t wait = until_turn(roll), retry = until(roll->retry_ms),
		retry_work = until(roll->retry_work_ms);

	if (retry < wait)
		wait = retry;
	if (retry_work < wait)
		wait = retry_work;
	if (wait == INT64_MAX)
		wait = -1;
	else if (wait > WAIT_MAX_MS)
		wait = WAIT_MAX_MS;
	roll->host->ops->wake_in(roll->host, (int)wait);
}

static ssize_t fail(struct roll *roll, int err)
{
	fault_note(&roll->fault, roll->host->log, roll->path, err);
	roll->retry_ms = clock_ms(CLOCK_MONOTONIC) + RETRY_MS;
	arm(roll);
	return -EAGAIN;
}

static int open_part(struct roll *roll)
{
	int err = roll_part_open(&roll->part, &roll->names);

	if (err)
		return err;
	roll->next_work->tidy = true; /* it may have found one that was there */
	roll->packed_len = 0;
	return 0;
}

/* It gets its final name; another one is not made yet. */
static int turn(struct roll *roll)
{
	struct roll_file **end = &roll->next_work->files;
	struct roll_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = roll_part_rename(&roll->names, roll->part.start_ms / 1000,
			       suffix_of(&roll->options), &roll->last,
			       file->name);
	if (err) {
		free(file);
		return err;
	}
	file->fd = TAKE_FD(roll->part.fd);
	roll->part.size = roll->part.whole = 0;
	while (*end)
		end = &(*end)->next;
	*end = file;
	roll->n_waiting++;
	return 0;
}

static int turn_and_go_on(struct roll *roll)
{
	int err = turn(roll);

	/* Without looking for leftovers: there was one moment for that. */
	err = err ?: roll_part_open(&roll->part, &roll->names);
	tend_worker(roll);
	return err;
}

/* Between lines, with something in the file; the disk is not too far behind. */
static bool may_turn(const struct roll *roll)
{
	return roll->part.fd >= 0 && roll->part.size && !roll->packed_len &&
	       roll->part.size == roll->part.whole &&
	       roll->n_waiting < WAITING_MAX;
}

/* Its first line is of an interval that is over. */
static bool is_old(const struct roll *roll)
{
	int64_t interval = (int64_t)roll->options.interval_ms;

	return interval && clock_ms(CLOCK_REALTIME) / interval !=
				   roll->part.start_ms / interval;
}

/* ---- Use ----------------------------------------------------------------------- */

/* Somebody may have removed it, or the directory, or mounted another one there. */
static bool is_lost(struct roll *roll)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC);

	if (now - roll->looked_ms < LOOK_MS && !roll->retry_ms)
		return false;
	roll->looked_ms = now;
	return !roll_part_is_there(&roll->part, &roll->names);
}

enum line_out_state roll_prepare(struct roll *roll)
{
	enum line_out_state state = LINE_OUT_READY;
	int err = 0;

	tend_worker(roll);
	if (roll->retry_ms && clock_ms(CLOCK_MONOTONIC) < roll->retry_ms) {
		arm(roll);
		return LINE_OUT_AWAY;
	}
	if (roll->part.fd >= 0 && is_lost(roll)) {
		close_fd(&roll->part.fd);
		roll->part.size = roll->part.whole = 0;
	}
	roll->retry_ms = 0;
	if (roll->part.fd < 0) {
		err = open_part(roll);
		state = LINE_OUT_NEW;
		tend_worker(roll);
	} else if (may_turn(roll) && is_old(roll)) {
		err = turn_and_go_on(roll);
	}
	if (!err)
		return state;
	fail(roll, err);
	return LINE_OUT_AWAY;
}

/* As much as is taken of what is packed. */
static int write_packed(struct roll *roll)
{
	while (roll->packed_len) {
		ssize_t n = write(roll->part.fd, roll->packed, roll->packed_len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!roll->part.size)
			roll->part.start_ms = clock_ms(CLOCK_REALTIME);
		roll->part.size += (size_t)n;
		roll->packed += n;
		roll->packed_len -= (size_t)n;
	}
	roll->part.whole = roll->part.size;
	return 0;
}

/* All or nothing: what was begun is gone on with when it is called again. */
ssize_t roll_write(struct roll *roll, const char *lines, size_t len)
{
	uint64_t most = roll->options.max_bytes;
	int err = 0;

	if (most && roll->part.size + len > most && may_turn(roll)) {
		err = turn_and_go_on(roll);
		if (err)
			return fail(roll, err);
	}
	if (!roll->packed_len) {
		ssize_t n = packer_pack(&roll->packer, lines, len, &roll->packed);

		if (n < 0)
			return fail(roll, (int)n);
		roll->packed_len = (size_t)n;
	}
	err = write_packed(roll);
	if (err)
		return fail(roll, err);
	fault_note(&roll->fault, roll->host->log, roll->path, 0);
	return (ssize_t)len;
}

void roll_rest(struct roll *roll)
{
	arm(roll);
}

void roll_counters(const struct roll *roll, sink_counter_fn *take, void *ctx)
{
	take(ctx, "files", roll->finished);
	take(ctx, "files_removed", roll->removed);
}

/* ---- Life ---------------------------------------------------------------------- */

static int set_up(struct roll *roll, const char *path)
{
	int err = roll_names_init(&roll->names, path);

	if (err)
		return err;
	roll->path = strdup(path);
	roll->next_work = make_work(roll);
	if (!roll->path || !roll->next_work ||
	    asprintf(&roll->finished_path, "%s (complete files)", path) < 0)
		return -ENOMEM;
	err = worker_new(roll_work_do, roll_work_free, &roll->worker);
	if (err)
		return err;
	err = roll->host->ops->watch(roll->host, worker_fd(roll->worker),
				     EPOLLIN);
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
	err = packer_open(&roll->packer, options->compress, options->level,
			  host->log);
	if (!err) {
		err = set_up(roll, path);
		if (err)
			log_error(host->log, "cannot write to %s: %s", path,
				  err == -EBUSY ? "another process does" :
						  strerror(-err));
	}
	if (err) {
		roll_close(roll);
		return err;
	}
	tend_worker(roll);
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
	if (!err && part->whole)
		err = turn(roll);
	else if (!err)
		roll_part_remove(part, &roll->names);
	if (err)
		fault_note(&roll->fault, roll->host->log, roll->path, err);
	close_fd(&part->fd);
}

static void finish_work(struct roll *roll)
{
	struct roll_work *work;

	worker_wait(roll->worker);
	work = worker_take(roll->worker);
	if (work)
		take_result(roll, work);
	if (has_work(roll)) {
		roll_work_do(roll->next_work);
		fault_note(&roll->work_fault, roll->host->log,
			   roll->finished_path, roll->next_work->err);
	}
	roll->host->ops->watch(roll->host, worker_fd(roll->worker), 0);
	worker_free(roll->worker);
}

void roll_close(struct roll *roll)
{
	if (!roll)
		return;
	if (roll->next_work)
		finish_part(roll);
	if (roll->worker)
		finish_work(roll);
	packer_close(&roll->packer);
	roll_work_free(roll->next_work);
	free(roll->path);
	free(roll->finished_path);
	free(roll);
}
