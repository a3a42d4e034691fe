/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Keeps the programs attached to the selected interfaces, while interfaces appear, change
 * and disappear, and while the selection changes.
 */
#ifndef NETOBS_ATTACH_HOOKS_H
#define NETOBS_ATTACH_HOOKS_H

#include "attach.h"
#include "base/loop.h"
#include "engine/tables.h"
#include "host/host.h"
#include "host/selection.h"

#include <sys/queue.h>

/* The programs on one interface: selected, attached by a job, checked, detached. */

/* ---- Jobs -------------------------------------------------------------------------------- */

/*
 * Attaches programs to interfaces and detaches them in the background. Each of these
 * waits for a grace period of the kernel at least, which would block the caller's event
 * loop. So a thread works through a batch of jobs and ends. Jobs contain all that they
 * need: the thread does not access memory of the context.
 */

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
	struct shared_fd *pins; /* directory of pins, if links outlive the process, see attach.h; or NULL */
	uint64_t incarnation; /* incarnation of the interface, for the caller */
	struct shared_fd *ns; /* NULL: the caller's namespace */
	struct shared_fd *programs[2]; /* indexed by enum direction */
	struct attachment attachment;  /* before and after */
	uint32_t priorities[2]; /* priorities of our filters; 0: no filter */
	struct netobs_shadow shadows[2]; /* but for HOOK_DETACH */
	int err;			 /* error of HOOK_ATTACH */
	int pin_err; /* error of pinning: it is attached all the same */

	TAILQ_ENTRY(hook_job) place; /* in a queue, or a batch */
};

TAILQ_HEAD(hook_queue, hook_job);

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

/* ---- Hooks ------------------------------------------------------------------------------- */

/*
 * The observed interfaces and their programs. Whether programs are on an interface is known in one
 * place at a time: in the interface's struct hooks, or, while a job attaches or detaches them, in
 * that job. Pins (attach.h) are a copy for the next process, made and removed by the thread that
 * runs the job.
 */

enum { LINK_KINDS = 2 };

/* The programs and jobs of a namespace. */
struct netns_programs {
	/* Indexed by link and observed direction; NULL until needed. */
	struct shared_fd *programs[LINK_KINDS][2];
	uint32_t n_jobs;
	uint32_t inode; /* as program_source.follow got it */
};

/* The kernel's counters of program runs, if it has them. */
struct program_runs {
	uint32_t programs;
	uint64_t runs, ns;
};

/* The source of programs that are put on interfaces. */
struct program_source {
	/* @is_next: with the filter that is about to replace the present one */
	int (*load)(void *ctx, uint16_t netns, enum link_kind link,
		    bool is_next, struct programs *ret_programs);
	/* The programs of @netns are for the namespace with that inode from now on. NULL: nobody asks */
	void (*follow)(void *ctx, uint16_t netns, uint32_t former,
		       uint32_t inode);
	void *ctx;
	struct origins *origins; /* origins that the programs use; NULL: none */
};

struct observation {
	const struct log *log;
	struct host *host;
	struct host_listener listener;
	struct program_source source;
	struct attach_options attach;
	struct attacher attacher;
	struct selection selection;
	struct netns_programs *netns; /* indexed like host.netns */
	struct netns_programs *next; /* programs that will replace those; NULL: none */
	uint32_t n_netns;
	struct program_runs replaced; /* programs that are not used any more */
	uint32_t n_attached;	      /* interfaces */
	uint32_t n_looking;	      /* jobs that look for shadows */
	int64_t looked_ns;
	uint64_t incarnations; /* incarnations of struct hooks so far */
	int attach_error;      /* the last one */
	bool is_changed;       /* host_settle() is due */
	int64_t shifted_ns;    /* when programs were last put on or off */
	int64_t leave_ns; /* deadline of removing programs; 0: they are being put on */
	struct shared_fd *pins; /* directory of pins, if links outlive the process; NULL: they do not */
	struct loop *loop;
	int names_timer; /* -1: no namespace has had a name */
	int stop_fd; /* observation_start() waits no longer once it is readable; -1: none */
};

/* The programs of a selected interface, attached or being attached. */
struct hooks {
	uint64_t incarnation; /* results of an earlier one are ignored */
	struct hook_job *job; /* job that has the attachment; NULL: none */
	bool is_attached;     /* counted in observation.n_attached */
	bool is_refused;      /* for its link type or the filter, as logged */
	uint16_t hardware;    /* that link type */
	struct netobs_shadow shadows[2]; /* they run before our programs */
	struct attachment attachment;
};

/*
 * Load the programs for one kind of links in a namespace, unless they are there. @is_next: to
 * observation.next, with the filter that is about to replace the present one.
 */
int hooks_ensure_programs(struct observation *observation, uint16_t netns,
			  enum link_kind link, bool is_next);

typedef int hooks_next_fn(void *ctx, uint16_t netns, enum link_kind link);

/*
 * Call @fn for each interface of @selection that has programs now, with what programs depend
 * on. @return 0, or the first result of @fn that is none
 */
int hooks_for_each_next(const struct observation *observation,
			const struct selection *selection, hooks_next_fn *fn,
			void *ctx);

/* Load the next programs for the interfaces that hooks_for_each_next() finds. */
int hooks_load_next(struct observation *observation,
		    const struct selection *selection);

/* Add the programs, and how they ran, to @runs. */
void hooks_count_runs(const struct netns_programs *netns,
		      struct program_runs *runs);

/* Programs that are loaded, and the runs of all that there were. */
struct program_runs hooks_all_runs(const struct observation *observation);

/* Answer for all programs: see program_sign_answer(). */
void hooks_answer_signs(const struct observation *observation);

void hooks_programs_done(struct netns_programs *netns);

/* @return whether the interface is selected */
bool hooks_are_wanted(const struct observation *observation,
		      const struct netns *netns, const struct netif *netif);

/* @return whether the programs are attached, or a job is attaching them */
bool hooks_are_on(const struct netif *netif);

/* Queue a job that attaches the programs, or checks them. @return 0, or -errno */
int hooks_put_on(struct observation *observation, const struct netns *netns,
		 struct netif *netif);

void hooks_take_off(struct observation *observation, const struct netns *netns,
		    struct netif *netif);

/* The programs of the namespace are others: have them run in the place of those before. */
void hooks_replace(struct observation *observation, const struct netns *netns,
		   struct netif *netif);

/*
 * hooks_put_on() or hooks_take_off(), if the selection of the interface has changed.
 *
 * @return whether programs will be attached or detached
 */
bool hooks_apply_selection(struct observation *observation,
			   const struct netns *netns, struct netif *netif);

/*
 * Take over the link or filter of an earlier process, to which hooks_put_on() gives programs.
 *
 * @return whether there was memory for that
 */
bool hooks_adopt(struct observation *observation, struct netif *netif,
		 enum direction direction, struct hook *hook);

/* Queue a job that detaches the link or filter of an earlier process. */
void hooks_remove(struct observation *observation, const struct netns *netns,
		  const struct netif *netif, enum direction direction,
		  struct hook *hook);

/* Close all links and filters, which are pinned. */
void hooks_drop_all(struct observation *observation);

/* The interface is gone: release its attachment. */
void hooks_lose(struct observation *observation, const struct netns *netns,
		struct netif *netif);

/* Queue a job that finds the programs that run before those of netobs. */
void hooks_look(struct observation *observation, const struct netns *netns,
		const struct netif *netif);

/* Takes ownership of @job, which has finished. */
void hooks_on_job(void *observation, struct hook_job *job);

/*
 * Steps before a selection is applied: check that it can be, and take over the links that an
 * earlier process has left attached, and pinned.
 */

/*
 * Check that @selection can be applied, and follow its namespaces. Programs are neither
 * attached nor detached; observation_apply() or observation_refuse() has to follow.
 *
 * @param replaces  the filter is to be replaced, too: load programs with the next one for all
 *                  interfaces
 * @return 0, or -errno, which was logged: a named interface or a namespace does not
 *         exist, or it cannot be observed
 */
int observation_prepare(struct observation *observation,
			struct selection *selection, bool replaces);

/**
 * Take over the links of an earlier process: those of interfaces that are selected are
 * theirs from now on, all others are removed. Call it when all namespaces are followed.
 *
 * @return false: other interfaces begin or end to be observed, while these have been all
 *         the time
 */
bool adopt_links(struct observation *observation,
		 const struct selection *selection);

/*
 * Take over the options @interfaces and @exclude, NULL-terminated lists or
 * NULL. Nothing in the kernel is touched.
 */
int observation_init(struct observation *observation, struct host *host,
		     const char *const *interfaces, const char *const *exclude);

/*
 * Find the interfaces and attach to those that are there; where that takes long,
 * to those that were named, unless stop_fd is readable before. On failure call
 * observation_done().
 *
 * @param pins  where links are pinned, and those of an earlier process are taken over from;
 *              NULL: nowhere
 */
int observation_start(struct observation *observation,
		      const struct program_source *source,
		      const struct attach_options *attach,
		      struct shared_fd *pins);

/*
 * Have @loop, of which the observation is a part from now on, follow what happens to
 * interfaces and to the programs on them. Again after observation_prepare(), which may
 * bring namespaces.
 */
int observation_watch(struct observation *observation, struct loop *loop);

/*
 * Take over @selection; programs are attached and detached in the background. Programs that
 * observation_prepare() loaded take the places of those that are attached: at each interface
 * and direction at once, so that each packet gets to one of them. Jobs that are under
 * way do it later.
 *
 * @return 0; -ENOMEM: the topology is not up to date
 */
int observation_apply(struct observation *observation,
		      struct selection *selection);

/* @return whether all programs that are attached are those of now */
bool observation_is_settled(const struct observation *observation);

/* Release what only observation_prepare() needed: programs, and namespaces. */
void observation_refuse(struct observation *observation);

/* All packets counted before @flip_ns (CLOCK_BOOTTIME) have been read. */
void observation_end_shift(struct observation *observation, int64_t flip_ns);

/* Look for programs that may hide packets, unless that was done recently. */
void observation_look(struct observation *observation);

/* @return number of directions of interfaces where one may hide packets */
uint32_t observation_count_shadowed(const struct observation *observation);

/*
 * Take all programs off, in the background, and put none on any more. Interfaces are
 * followed as before, for the last flows.
 */
void observation_detach(struct observation *observation);

/*
 * Detach as observation_detach(), but leave pinned programs attached: they count also after the
 * observation has ended.
 */
void observation_leave(struct observation *observation);

/*
 * After observation_detach() or observation_leave().
 *
 * @return whether all jobs are done, or leave_ns has passed and the thread continues alone. If it attaches
 *         programs that are not pinned, this takes eight seconds longer: they are detached once it has ended
 */
bool observation_is_detached(const struct observation *observation);

/* Waits until leave_ns at most. The thread itself detaches what it attaches later. */
void observation_done(struct observation *observation);

#endif
