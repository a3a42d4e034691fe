/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "base/worker.h"

enum { MESSAGES = 16, MESSAGE_MAX = 512 };

struct message {
	int level;
	char text[MESSAGE_MAX];
};

/* Work of one thread; the strings of @opts outlive it. */
struct work {
	struct netobs_capture_opts opts;
	struct netobs *capture; /* NULL: the thread makes it */
	int result;
};

struct capture_start {
	struct worker *worker;
	struct work work;
	bool is_busy, is_starting; /* a capture that was made before */
	void (*on_log)(int level, const char *message, void *user);
	void *user;
	struct message messages[MESSAGES]; /* the thread's, until it is done */
	uint32_t n_messages;
};

static void do_work(void *arg)
{
	struct work *work = arg;

	work->result = work->capture ?
			       netobs_start(work->capture) :
			       netobs_capture_new(&work->opts, &work->capture);
}

/* The work is part of struct capture_start, which waits for the thread. */
static void leave_work(void *work)
{
	(void)work;
}

int capture_start_new(void (*on_log)(int level, const char *message, void *user),
		      void *user, struct capture_start **ret_start)
{
	cleanup_free struct capture_start *start = calloc(1, sizeof(*start));
	int err = start ? worker_new(do_work, leave_work, &start->worker) :
			  -ENOMEM;

	if (err)
		return err;
	start->on_log = on_log;
	start->user = user;
	*ret_start = TAKE_PTR(start);
	return 0;
}

void capture_start_free(struct capture_start *start)
{
	struct netobs *capture;
	int result;

	if (!start)
		return;
	if (capture_start_finish(start, &capture, &result))
		netobs_free(capture);
	worker_free(start->worker);
	free(start);
}

int capture_start_fd(const struct capture_start *start)
{
	return worker_fd(start->worker);
}

static void begin_capture(struct capture_start *start)
{
	start->is_busy = true;
	worker_start_or_run(start->worker, &start->work);
}

void capture_start_make(struct capture_start *start,
			const struct netobs_capture_opts *opts)
{
	start->work = (struct work){ .opts = *opts };
	start->is_starting = false;
	begin_capture(start);
}

void capture_start_run(struct capture_start *start, struct netobs *capture)
{
	start->work = (struct work){ .capture = capture };
	start->is_starting = true;
	begin_capture(start);
}

/* If there is no more room, keep the last message, which says why a start failed. */
bool capture_start_keep_log(struct capture_start *start, int level,
			    const char *message)
{
	struct message *kept;

	if (!start->is_busy)
		return false;
	start->n_messages += start->n_messages < MESSAGES;
	kept = &start->messages[start->n_messages - 1];
	kept->level = level;
	snprintf(kept->text, sizeof(kept->text), "%s", message);
	return true;
}

static void hand_on_messages(struct capture_start *start)
{
	for (uint32_t i = 0; i < start->n_messages; i++)
		start->on_log(start->messages[i].level, start->messages[i].text,
			      start->user);
	start->n_messages = 0;
}

bool capture_start_is_busy(const struct capture_start *start)
{
	return start->is_busy;
}

bool capture_start_take(struct capture_start *start,
			struct netobs **ret_capture, int *ret_result)
{
	struct work *work = worker_take(start->worker);

	if (!work)
		return false;
	start->is_busy = false;
	hand_on_messages(start);
	if (work->result < 0)
		netobs_free(TAKE_PTR(work->capture));
	*ret_capture = TAKE_PTR(work->capture);
	*ret_result = work->result;
	return true;
}

bool capture_start_finish(struct capture_start *start,
			  struct netobs **ret_capture, int *ret_result)
{
	if (start->is_busy && start->is_starting)
		netobs_stop(start->work.capture);
	if (start->is_busy)
		worker_wait(start->worker, -1);
	return capture_start_take(start, ret_capture, ret_result);
}
