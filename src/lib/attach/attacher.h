/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Attaches programs to interfaces and detaches them in the background. Each of these
 * waits for a grace period of the kernel at least, which would block the caller's event
 * loop. So a thread works through a batch of jobs and ends. Jobs contain all that they
 * need: the thread does not access memory of the context.
 */
#ifndef NETOBS_ATTACH_ATTACHER_H
#define NETOBS_ATTACH_ATTACHER_H

#include "attach.h"
#include "shadow.h"
#include "base/io.h"

enum hook_work {
	HOOK_ATTACH, /* attach the programs, unless they are attached */
	HOOK_DETACH,
	HOOK_LOOK, /* only find the programs that run before them */
	HOOK_WORKS
};

/* Work on one interface. */
struct hook_job {
	enum hook_work work;
	uint16_t netns;
	uint32_t ifindex;
	struct shared_fd *pins; /* directory of pins, if links outlive the process, see link_pins.h; or NULL */
	uint64_t incarnation; /* incarnation of the interface, for the caller */
	struct shared_fd *ns; /* NULL: the caller's namespace */
	struct shared_fd *programs[2]; /* indexed by enum direction */
	struct attachment attachment;  /* before and after */
	uint32_t priorities[2]; /* priorities of our filters; 0: no filter */
	struct netobs_shadow shadows[2]; /* but for HOOK_DETACH */
	int err;			 /* error of HOOK_ATTACH */
	int pin_err; /* error of pinning: it is attached all the same */

	struct hook_job *next;
};

struct hook_queue {
	struct hook_job *first, *last;
};

struct worker;
struct batch;

struct attacher {
	struct attach_options options;
	bool can_expedite;
	bool makes_links; /* the kernel has them, as far as is known; else filters */
	bool is_leaving; /* nothing is attached any more */
	bool keeps;	 /* nothing is detached, either: it is pinned */
	struct worker *worker;
	struct batch *batch; /* the thread's, until it is collected; NULL: no thread runs */
	struct hook_queue queues[HOOK_WORKS]; /* indexed by enum hook_work */
};

int attacher_init(struct attacher *attacher,
		  const struct attach_options *options);

/*
 * Start the queued jobs that detach, and drop those that attach. @attacher may be zeroed
 * instead of initialised.
 */
void attacher_leave(struct attacher *attacher);

/*
 * attacher_leave(), and wait for its end until @deadline_ns, of CLOCK_BOOTTIME. The
 * thread continues after that.
 */
void attacher_done(struct attacher *attacher, int64_t deadline_ns);

/* @return a descriptor that polls readable when there are jobs to collect */
int attacher_fd(const struct attacher *attacher);

/*
 * A job for attacher_add(), with a reference to @ns. NULL: no memory.
 */
struct hook_job *hook_job_new(enum hook_work work, uint32_t ifindex,
			      struct shared_fd *ns);

/* Detaches the programs that @job still has attached. NULL is fine. */
void hook_job_free(struct hook_job *job);

/* Queue @job, which is the attacher's then. Detaching comes first. */
void attacher_add(struct attacher *attacher, struct hook_job *job);

/*
 * Take @job, of HOOK_ATTACH, back.
 *
 * @return whether it was still queued; then it is the caller's again
 */
bool attacher_cancel(struct attacher *attacher, struct hook_job *job);

/* Start a batch of the queued jobs, unless one is under way. */
void attacher_go(struct attacher *attacher);

/* Pass each completed job to @on_done, which owns it then, and start the rest. */
void attacher_collect(struct attacher *attacher,
		      void (*on_done)(void *ctx, struct hook_job *job),
		      void *ctx);

/* @return whether a job is queued or under way */
bool attacher_is_busy(const struct attacher *attacher);

/*
 * @return whether a batch is under way that was started before attacher_leave(): it may attach
 *         programs, which are detached after it has been collected
 */
bool attacher_may_attach(const struct attacher *attacher);

#endif
