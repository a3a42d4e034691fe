// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "hooks.h"

#include "base/clock.h"
#include "host/netns.h"
#include "base/worker.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <stdatomic.h>
#include <errno.h>
#include <string.h>

enum {
	/* While a batch is under way, nothing else is begun. */
	BATCH_MAX = 4096,
	BATCH_SLOW_MAX = 16, /* when grace periods are not expedited */
};

/* The work of a thread. */
struct batch {
	struct attach_options options;
	bool can_expedite;
	struct hook_queue jobs;
	uint32_t n_jobs;
	bool makes_links; /* make links; false: filters */
	bool only_detaches;
	atomic_bool is_cancelled; /* attach nothing more */
};

/* Threads do not log: the callback is the caller's thread's. */
static const struct log silent;

/* The namespace that a thread is in, between its jobs. */
struct visit {
	int own_fd;		    /* -1: not needed so far */
	const struct shared_fd *ns; /* NULL: its own */
};

static int visit_netns(struct visit *visit, const struct shared_fd *ns)
{
	int err;

	if (ns == visit->ns)
		return 0;
	if (visit->own_fd < 0)
		visit->own_fd = netns_open_own();
	if (visit->own_fd < 0)
		return visit->own_fd;
	err = netns_move(ns ? shared_fd_get(ns) : visit->own_fd);
	if (!err)
		visit->ns = ns;
	return err;
}

static void leave_netns(struct visit *visit)
{
	if (visit->ns)
		netns_leave(TAKE_FD(visit->own_fd));
	visit->ns = NULL;
	close_fd(&visit->own_fd);
}

struct hook_job *hook_job_new(enum hook_work work, uint32_t ifindex,
			      struct shared_fd *ns)
{
	struct hook_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->work = work;
	job->ifindex = ifindex;
	job->ns = shared_fd_ref(ns);
	job->attachment = ATTACHMENT_NONE;
	return job;
}

/* Free a job whose pinned links and filters stay attached. */
static void hook_job_drop(struct hook_job *job)
{
	attachment_drop(&job->attachment);
	hook_job_free(job);
}

void hook_job_free(struct hook_job *job)
{
	struct visit where = { .own_fd = -1 };

	if (!job)
		return;
	if (is_attached(&job->attachment)) {
		/* Elsewhere, filters of another interface could be hit. */
		if (!visit_netns(&where, job->ns))
			detach(&silent, &job->attachment, job->ifindex);
		attachment_drop(&job->attachment);
		leave_netns(&where);
	}
	shared_fd_unref(job->ns);
	shared_fd_unref(job->pins);
	shared_fd_unref(job->programs[INGRESS]);
	shared_fd_unref(job->programs[EGRESS]);
	free(job);
}

static uint32_t program_id(const struct shared_fd *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = shared_fd_get(program);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

static void run_look(const struct batch *batch, struct hook_job *job)
{
	for (int d = INGRESS; d <= EGRESS; d++) {
		const struct shadow_subject subject = {
			.ifindex = job->ifindex,
			.direction = d,
			.program_id = program_id(job->programs[d]),
			.priority = job->priorities[d],
		};

		if (batch->options.directions[d])
			shadow_find(&subject, &job->shadows[d]);
	}
}

static void run_attach(const struct batch *batch, struct hook_job *job)
{
	const struct programs programs = { {
		shared_fd_get(job->programs[INGRESS]),
		shared_fd_get(job->programs[EGRESS]),
	} };

	const struct attachment before = job->attachment;

	attachment_verify(&job->attachment, job->ifindex);
	/* The programs that are attached may be those of an earlier process. */
	if (attachment_replace(&job->attachment, &programs))
		detach(&silent, &job->attachment, job->ifindex);
	link_pins_remove_others(job->pins, job->netns, job->ifindex, &before,
				&job->attachment);
	job->err = attach(&batch->options, job->ifindex, "", &programs,
			  &job->attachment);
	if (job->err)
		link_pins_remove(job->pins, job->netns, job->ifindex, &before);
	else
		job->pin_err = link_pins_add(job->pins, job->netns,
					     job->ifindex, &job->attachment);
	for (int d = INGRESS; d <= EGRESS; d++)
		job->priorities[d] = job->attachment.hooks[d].filter.priority;
	if (!job->err)
		run_look(batch, job);
}

static void run_job(const struct batch *batch, struct hook_job *job,
		    struct visit *where)
{
	int err = visit_netns(where, job->ns);

	if (err) {
		job->err = err;
		attachment_drop(&job->attachment);
	} else if (job->work == HOOK_ATTACH) {
		run_attach(batch, job);
	} else if (job->work == HOOK_LOOK) {
		run_look(batch, job);
	} else {
		link_pins_remove(job->pins, job->netns, job->ifindex,
				 &job->attachment);
		detach(&silent, &job->attachment, job->ifindex);
	}
}

/*
 * @return whether it waits for grace periods; filters do not. Links of an interface that is
 * gone are closed without one, but behind the lock that the kernel holds while it waits for
 * two per interface that goes with it.
 */
static bool is_slow(const struct batch *batch, const struct hook_job *job)
{
	return has_link(&job->attachment) ||
	       (job->work == HOOK_ATTACH && batch->makes_links);
}

static void run_batch(void *work)
{
	struct batch *batch = work;
	struct visit where = { .own_fd = -1 };
	bool is_expedited = false;
	struct hook_job *job;

	TAILQ_FOREACH(job, &batch->jobs, place) {
		if (batch->is_cancelled && job->work == HOOK_ATTACH)
			continue;
		/* Each time: another process may have taken it back for itself. */
		if (batch->can_expedite && is_slow(batch, job)) {
			expedite_begin();
			is_expedited = true;
		}
		run_job(batch, job, &where);
		if (is_attached(&job->attachment))
			batch->makes_links = has_link(&job->attachment);
	}
	leave_netns(&where);
	if (is_expedited)
		expedite_end();
}

static struct hook_job *queue_pop(struct hook_queue *queue)
{
	struct hook_job *job = TAILQ_FIRST(queue);

	if (job)
		TAILQ_REMOVE(queue, job, place);
	return job;
}

static void free_batch(void *work)
{
	struct batch *batch = work;
	struct hook_job *job;

	while (batch && (job = queue_pop(&batch->jobs)))
		hook_job_free(job);
	free(batch);
}

int attacher_init(struct attacher *attacher, const struct attach_options *options)
{
	*attacher = (struct attacher){
		.options = *options,
		.can_expedite = options->may_expedite && !expedite_probe(),
		.makes_links = options->use_tcx,
	};
	for (int i = 0; i < HOOK_WORKS; i++)
		TAILQ_INIT(&attacher->queues[i]);
	attacher->options.log = &silent;
	if (attacher->can_expedite)
		expedite_end(); /* left by a run that was killed */
	return worker_new(run_batch, free_batch, &attacher->worker);
}

int attacher_fd(const struct attacher *attacher)
{
	return worker_fd(attacher->worker);
}

void attacher_add(struct attacher *attacher, struct hook_job *job)
{
	TAILQ_INSERT_TAIL(&attacher->queues[job->work], job, place);
}

bool attacher_cancel(struct attacher *attacher, struct hook_job *job)
{
	struct hook_queue *queue = &attacher->queues[HOOK_ATTACH];
	const struct hook_job *queued;

	TAILQ_FOREACH(queued, queue, place)
		if (queued == job)
			break;
	if (queued)
		TAILQ_REMOVE(queue, job, place);
	return queued;
}

static bool has_queued(const struct attacher *attacher)
{
	return !TAILQ_EMPTY(&attacher->queues[HOOK_ATTACH]) ||
	       !TAILQ_EMPTY(&attacher->queues[HOOK_DETACH]) ||
	       !TAILQ_EMPTY(&attacher->queues[HOOK_LOOK]);
}

bool attacher_is_busy(const struct attacher *attacher)
{
	return attacher->batch || has_queued(attacher);
}

bool attacher_may_attach(const struct attacher *attacher)
{
	return attacher->batch && !attacher->batch->only_detaches;
}

/* Detaching is first, so that no packet passes old and new programs. */
static void fill_job_batch(struct attacher *attacher, struct batch *batch,
			   uint32_t max)
{
	TAILQ_INIT(&batch->jobs);
	for (; batch->n_jobs < max; batch->n_jobs++) {
		struct hook_job *job = queue_pop(&attacher->queues[HOOK_DETACH]);

		if (!job)
			job = queue_pop(&attacher->queues[HOOK_ATTACH]);
		if (!job)
			job = queue_pop(&attacher->queues[HOOK_LOOK]);
		if (!job)
			break;
		TAILQ_INSERT_TAIL(&batch->jobs, job, place);
	}
}

static void start_batch(struct attacher *attacher, uint32_t max)
{
	struct batch *batch;

	if (attacher->batch || !has_queued(attacher))
		return;
	batch = calloc(1, sizeof(*batch));
	if (!batch)
		return; /* the next job tries again */
	batch->options = attacher->options;
	batch->can_expedite = attacher->can_expedite;
	batch->makes_links = attacher->makes_links;
	batch->only_detaches = attacher->is_leaving;
	fill_job_batch(attacher, batch, max);
	attacher->batch = batch;
	worker_start_or_run(attacher->worker, batch);
}

/* The last batch has all, whatever it takes. */
void attacher_go(struct attacher *attacher)
{
	start_batch(attacher, attacher->is_leaving   ? UINT32_MAX :
			      attacher->can_expedite ? BATCH_MAX :
						       BATCH_SLOW_MAX);
}

static void collect_jobs(struct attacher *attacher,
			 void (*on_done)(void *ctx, struct hook_job *job),
			 void *ctx)
{
	struct batch *batch = worker_take(attacher->worker);
	struct hook_job *job;

	if (!batch)
		return;
	attacher->batch = NULL;
	attacher->makes_links = batch->makes_links;
	while ((job = queue_pop(&batch->jobs)))
		on_done(ctx, job);
	free(batch);
}

void attacher_collect(struct attacher *attacher,
		      void (*on_done)(void *ctx, struct hook_job *job), void *ctx)
{
	collect_jobs(attacher, on_done, ctx);
	attacher_go(attacher);
}

/* Jobs that attach are not needed any more. */
static void give_up(void *ctx, struct hook_job *job)
{
	struct attacher *attacher = ctx;

	job->work = HOOK_DETACH;
	if (is_attached(&job->attachment) && !attacher->keeps)
		attacher_add(attacher, job);
	else if (attacher->keeps)
		hook_job_drop(job);
	else
		hook_job_free(job);
}

void attacher_leave(struct attacher *attacher)
{
	struct hook_job *job;

	if (!attacher->worker)
		return;
	attacher->is_leaving = true;
	if (attacher->batch && !attacher->keeps)
		attacher->batch->is_cancelled = true;
	while ((job = queue_pop(&attacher->queues[HOOK_ATTACH]) ?:
			      queue_pop(&attacher->queues[HOOK_LOOK])))
		give_up(attacher, job);
	attacher_go(attacher);
}

static void wait_until(const struct attacher *attacher, int64_t deadline_ns)
{
	struct pollfd fd = { .fd = attacher_fd(attacher), .events = POLLIN };
	int64_t left = deadline_ns - clock_boot_ns();

	if (left > 0)
		poll(&fd, 1, left / NSEC_PER_MSEC + 1);
}

void attacher_done(struct attacher *attacher, int64_t deadline_ns)
{
	struct hook_job *job;

	if (!attacher->worker)
		return;
	attacher_leave(attacher);
	while (attacher->batch && clock_boot_ns() < deadline_ns) {
		wait_until(attacher, deadline_ns);
		attacher_collect(attacher, give_up, attacher);
	}
	worker_free(attacher->worker);
	while ((job = queue_pop(&attacher->queues[HOOK_DETACH]))) {
		if (attacher->keeps)
			hook_job_drop(job);
		else
			hook_job_free(job);
	}
	*attacher = (struct attacher){ 0 };
}
