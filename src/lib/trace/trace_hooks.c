// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_state.h"

#include "base/clock.h"
#include "base/privilege.h"
#include "base/util.h"
#include "host/netns.h"

#include <errno.h>
#include <string.h>

enum {
	WALK_MS = 2, /* of a sweep, to search processes */
	RETRY_FIRST_S = 2,
	RETRY_DOUBLINGS = 5, /* a minute at most */
};

#define IDLE_NS (10 * NSEC_PER_SEC)

/* ---- Namespaces without hooks ------------------------------------------------------------- */

static void note_unhooked(struct trace_hooks *hooks, uint32_t inode)
{
	struct slots *unhooked = &hooks->unhooked;

	if (slots_item(unhooked, &inode))
		return;
	if (unhooked->n == TRACE_UNHOOKED_MAX ||
	    !slots_add(unhooked, &inode, sizeof(inode), sizeof(inode)))
		hooks->has_more_unhooked = true;
}

/* Some had no place, and are noted at their next event: none may be missing any more once there are none. */
static void forget_unhooked(struct trace_hooks *hooks, uint32_t inode)
{
	slots_remove(&hooks->unhooked, &inode);
	hooks->has_more_unhooked &= hooks->unhooked.n > 0;
}

uint64_t trace_hooks_count_unhooked(const struct trace_hooks *hooks)
{
	return hooks->unhooked.n + hooks->has_more_unhooked;
}

/* ---- A namespace ---------------------------------------------------------------------------- */

static void leave_space(struct trace_space *space)
{
	for (size_t i = 0; space->is_hooked && i < TRACE_HOOK_LINKS; i++)
		close_fd(&space->links[i]);
	space->is_hooked = false;
}

static int hook_space(const struct trace_hooks *hooks,
		      struct trace_space *space, int fd)
{
	uint32_t own;
	int back, err;

	/* The calling thread's own namespace takes no privileges. */
	if (!netns_find(NULL, &own) && own == space->inode)
		return trace_programs_hook(hooks->programs, &space->first_link,
					   space->links);
	err = netns_enter(fd, &back);
	if (err)
		return err;
	err = trace_programs_hook(hooks->programs, &space->first_link,
				  space->links);
	netns_leave(back);
	return err;
}

static const char *describe(int err)
{
	switch (err) {
	case -ENOENT:
		return "neither a name nor a process of it was found";
	case -EBUSY: /* no priority in front of all others or behind them */
	case -E2BIG: /* the kernel's limit of programs */
		return "a hook has no room for one more program";
	default:
		return strerror(-err);
	}
}

/* Later attempts come at ever longer intervals: there may be many such namespaces. */
static void fail_space(struct trace_hooks *hooks, struct trace_space *space,
		       int err, int64_t now_ns)
{
	space->is_wanted = space->is_sought = false;
	space->retry_ns = now_ns + (RETRY_FIRST_S * NSEC_PER_SEC
				    << min_u64(space->failures, RETRY_DOUBLINGS));
	space->failures++;
	if (hooks->is_failure_logged)
		return;
	hooks->is_failure_logged = true;
	log_warning(hooks->log,
		    "netfilter's hooks in the network namespace %u are not traced: %s%s",
		    space->inode, describe(err),
		    privilege_hint(err, PRIVILEGE_PROCESSES).text);
}

static void enter_space(struct trace_hooks *hooks, struct trace_space *space,
			int fd, int64_t now_ns)
{
	const int err = hook_space(hooks, space, fd);

	if (err) {
		fail_space(hooks, space, err, now_ns);
		return;
	}
	space->is_hooked = true;
	space->is_wanted = false;
	space->failures = 0;
	forget_unhooked(hooks, space->inode);
}

/* Attach at once if the namespace is found quickly; else trace_hooks_sweep() searches all processes. */
static void try_space(struct trace_hooks *hooks, struct trace_space *space,
		      uint32_t pid)
{
	cleanup_fd int fd = netns_search(space->inode, pid);

	note_unhooked(hooks, space->inode);
	if (fd >= 0)
		enter_space(hooks, space, fd, space->used_ns);
	else
		space->is_wanted = true;
}

/* ---- All processes -------------------------------------------------------------------------- */

/* NULL: there is none. */
static struct trace_space *find_space(const struct trace_hooks *hooks,
				      uint32_t inode)
{
	return slots_item(&hooks->spaces, &inode);
}

/* Namespaces that become wanted during a walk have to wait for the next one. */
static bool begin_walk(struct trace_hooks *hooks)
{
	bool is_any = false;

	for (uint32_t i = 0; i < hooks->spaces.n; i++) {
		struct trace_space *space = slots_at(&hooks->spaces, i);

		space->is_sought = space->is_wanted;
		is_any |= space->is_sought;
	}
	return is_any && !netns_walk_begin(&hooks->walk);
}

/* A process that is ending is denied as well, so a denial alone does not show missing privileges. */
static void end_walk(struct trace_hooks *hooks, int64_t now_ns)
{
	const bool is_denied = hooks->walk.is_denied &&
			       privilege_missing(-EACCES, PRIVILEGE_PROCESSES);
	const int err = is_denied ? -EACCES : -ENOENT;

	for (uint32_t i = 0; i < hooks->spaces.n; i++) {
		struct trace_space *space = slots_at(&hooks->spaces, i);

		if (space->is_sought && space->is_wanted)
			fail_space(hooks, space, err, now_ns);
	}
}

static void look_at_process(struct trace_hooks *hooks, int fd, uint32_t inode,
			    int64_t now_ns)
{
	struct trace_space *space = find_space(hooks, inode);

	if (space && space->is_wanted)
		enter_space(hooks, space, fd, now_ns);
}

static void walk_processes(struct trace_hooks *hooks, int64_t now_ns)
{
	const int64_t end_ns = clock_boot_ns() + WALK_MS * NSEC_PER_MSEC;

	if (!hooks->walk.dir && !begin_walk(hooks))
		return;
	do {
		cleanup_fd int fd = -1;
		uint32_t inode;

		if (!netns_walk_next(&hooks->walk, &fd, &inode)) {
			end_walk(hooks, now_ns);
			return;
		}
		if (fd >= 0)
			look_at_process(hooks, fd, inode, now_ns);
	} while (clock_boot_ns() < end_ns);
}

/* ---- Use ------------------------------------------------------------------------------------ */

/* NULL: there are too many, or there is no memory. */
static struct trace_space *get_space(struct trace_hooks *hooks, uint32_t inode)
{
	if (hooks->spaces.n == TRACE_SPACES_MAX)
		return find_space(hooks, inode);
	return slots_add(&hooks->spaces, &inode, sizeof(inode),
			 sizeof(struct trace_space));
}

void trace_hooks_note(struct trace_hooks *hooks, uint32_t inode, uint32_t pid,
		      int64_t now_ns)
{
	struct trace_space *space;

	if (!hooks->programs || !inode)
		return;
	space = get_space(hooks, inode);
	if (!space) {
		note_unhooked(hooks, inode);
		return;
	}
	space->used_ns = now_ns;
	if (!space->is_hooked && !space->is_wanted &&
	    space->used_ns >= space->retry_ns)
		try_space(hooks, space, pid);
}

void trace_hooks_note_own(struct trace_hooks *hooks, int64_t now_ns)
{
	uint32_t own;

	if (!netns_find(NULL, &own))
		trace_hooks_note(hooks, own, 0, now_ns);
}

/* A namespace that could not be hooked stays in the list until its retry time, so that the interval grows. */
static bool is_over(const struct trace_space *space, int64_t now_ns)
{
	return now_ns - space->used_ns > IDLE_NS &&
	       (space->is_hooked || now_ns >= space->retry_ns);
}

static void forget_space(struct trace_hooks *hooks, struct trace_space *space)
{
	const uint32_t inode = space->inode;

	leave_space(space);
	slots_remove(&hooks->spaces, &inode);
}

void trace_hooks_sweep(struct trace_hooks *hooks, int64_t now_ns)
{
	for (uint32_t i = hooks->spaces.n; i--;) {
		struct trace_space *space = slots_at(&hooks->spaces, i);

		if (is_over(space, now_ns))
			forget_space(hooks, space);
	}
	walk_processes(hooks, now_ns);
}

void trace_hooks_leave(struct trace_hooks *hooks)
{
	netns_walk_end(&hooks->walk);
	while (hooks->spaces.n)
		forget_space(hooks, slots_at(&hooks->spaces, 0));
}

void trace_hooks_close(struct trace_hooks *hooks)
{
	trace_hooks_leave(hooks);
	slots_free(&hooks->spaces);
	slots_free(&hooks->unhooked);
	*hooks = (struct trace_hooks){ 0 };
}
