// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_hooks.h"

#include "base/util.h"
#include "host/netns.h"
#include "host/netns_search.h"

#include <errno.h>

#define IDLE_NS (10 * NSEC_PER_SEC)
#define RETRY_NS (2 * NSEC_PER_SEC)

static void leave_space(struct trace_space *space)
{
	for (size_t i = 0; space->is_hooked && i < TRACE_HOOK_LINKS; i++)
		close_fd(&space->links[i]);
	space->is_hooked = false;
}

static int hook_space(const struct trace_hooks *hooks,
		      struct trace_space *space, uint32_t pid)
{
	cleanup_fd int fd = netns_search(space->inode, pid);
	uint32_t own;
	int back, err;

	if (fd < 0)
		return fd;
	/* It takes no privilege to be where one is. */
	if (!netns_find(NULL, &own) && own == space->inode)
		return trace_programs_hook(hooks->programs, space->links);
	err = netns_enter(fd, &back);
	if (err)
		return err;
	err = trace_programs_hook(hooks->programs, space->links);
	netns_leave(back);
	return err;
}

static void try_space(struct trace_hooks *hooks, struct trace_space *space,
		      uint32_t pid)
{
	const int err = hook_space(hooks, space, pid);

	space->is_hooked = !err;
	if (!err)
		return;
	hooks->n_failed += !space->retry_ns;
	space->retry_ns = space->used_ns + RETRY_NS;
	if (hooks->is_failure_logged)
		return;
	hooks->is_failure_logged = true;
	log_warning(hooks->log,
		    "netfilter's hooks in the network namespace %u are not traced: %s",
		    space->inode, strerror(-err));
}

static struct trace_space *find_space(struct trace_hooks *hooks, uint32_t inode)
{
	if (hooks->last < hooks->n && hooks->spaces[hooks->last].inode == inode)
		return &hooks->spaces[hooks->last];
	for (uint32_t i = 0; i < hooks->n; i++)
		if (hooks->spaces[i].inode == inode) {
			hooks->last = i;
			return &hooks->spaces[i];
		}
	return NULL;
}

/* NULL: there are too many. */
static struct trace_space *add_space(struct trace_hooks *hooks, uint32_t inode)
{
	struct trace_space *space = &hooks->spaces[hooks->n];

	if (hooks->n == TRACE_SPACES_MAX) {
		hooks->n_failed += !hooks->is_full;
		hooks->is_full = true;
		return NULL;
	}
	*space = (struct trace_space){ .inode = inode };
	hooks->n++;
	return space;
}

void trace_hooks_note(struct trace_hooks *hooks, uint32_t inode, uint32_t pid,
		      int64_t now_ns)
{
	struct trace_space *space;

	if (!hooks->spaces || !inode)
		return;
	space = find_space(hooks, inode) ?: add_space(hooks, inode);
	if (!space)
		return;
	space->used_ns = now_ns;
	if (!space->is_hooked && space->used_ns >= space->retry_ns)
		try_space(hooks, space, pid);
}

void trace_hooks_note_own(struct trace_hooks *hooks, int64_t now_ns)
{
	uint32_t own;

	if (!netns_find(NULL, &own))
		trace_hooks_note(hooks, own, 0, now_ns);
}

void trace_hooks_sweep(struct trace_hooks *hooks, int64_t now_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < hooks->n; i++) {
		struct trace_space *space = &hooks->spaces[i];

		if (now_ns - space->used_ns > IDLE_NS)
			leave_space(space);
		else
			hooks->spaces[n++] = *space;
	}
	hooks->n = n;
}

void trace_hooks_leave(struct trace_hooks *hooks)
{
	while (hooks->n)
		leave_space(&hooks->spaces[--hooks->n]);
}

int trace_hooks_open(struct trace_hooks *hooks,
		     const struct trace_programs *programs, const struct log *log)
{
	*hooks = (struct trace_hooks){
		.programs = programs,
		.log = log,
		.spaces = calloc(TRACE_SPACES_MAX, sizeof(*hooks->spaces)),
	};
	return hooks->spaces ? 0 : -ENOMEM;
}

void trace_hooks_close(struct trace_hooks *hooks)
{
	trace_hooks_leave(hooks);
	free(hooks->spaces);
	*hooks = (struct trace_hooks){ 0 };
}
