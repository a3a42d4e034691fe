/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Netfilter's hooks belong to a network namespace. The tracer attaches its programs in the
 * namespaces that chosen connections pass, from their first event there until some time after the
 * last one. A link keeps its namespace alive, so unused ones are removed.
 */
#ifndef NETOBS_TRACE_TRACE_HOOKS_H
#define NETOBS_TRACE_TRACE_HOOKS_H

#include "base/log.h"
#include "trace_programs.h"
#include "host/netns.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_SPACES_MAX = 64, TRACE_UNHOOKED_MAX = 1024 };

struct trace_space {
	uint32_t inode;
	bool is_hooked;
	bool is_wanted; /* it is to be found among all processes, */
	bool is_sought; /* from the first one of this walk on */
	uint32_t failures;
	uint32_t first_link; /* of trace_programs_hook() */
	int64_t used_ns;     /* CLOCK_BOOTTIME: the time of its last event */
	int64_t retry_ns;    /* no search for it begins before */
	int links[TRACE_HOOK_LINKS];
};

/* Zeroes: of no namespace. */
struct trace_hooks {
	const struct trace_programs *programs;
	const struct log *log;
	struct trace_space *spaces; /* NULL: hooks are not wanted, or cannot be attached to */
	uint32_t n;
	uint32_t last; /* index of the space of the last event: often the next one's, too */
	struct netns_walk walk;
	uint32_t unhooked[TRACE_UNHOOKED_MAX]; /* had events, but the tracer is not attached */
	uint32_t n_unhooked;
	bool has_more_unhooked; /* others had events while unhooked[] was full */
	bool is_failure_logged;
};

/**
 * @param programs  open, with netfilter's programs; they and @log stay as long as it is open
 * @return 0; -ENOMEM
 */
int trace_hooks_open(struct trace_hooks *hooks,
		     const struct trace_programs *programs,
		     const struct log *log);

/** Note an event of a chosen connection in a namespace at @now_ns. @pid: a process that may be in it */
void trace_hooks_note(struct trace_hooks *hooks, uint32_t inode, uint32_t pid,
		      int64_t now_ns);

/** Attach to the hooks of the calling thread's namespace. */
void trace_hooks_note_own(struct trace_hooks *hooks, int64_t now_ns);

/** Detach from namespaces without recent events, and search processes for others, for some milliseconds. */
void trace_hooks_sweep(struct trace_hooks *hooks, int64_t now_ns);

/** @return the number of namespaces that are not attached to; all beyond TRACE_UNHOOKED_MAX count as one */
uint64_t trace_hooks_count_unhooked(const struct trace_hooks *hooks);

/** Detach from all namespaces. */
void trace_hooks_leave(struct trace_hooks *hooks);

/** Detach from all namespaces, and free the list. */
void trace_hooks_close(struct trace_hooks *hooks);

#endif
