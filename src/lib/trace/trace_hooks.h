/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Netfilter's hooks belong to a network namespace: those of the namespaces that chosen connections pass
 * have the tracer's programs, from the first event there until some time after the last one. A link keeps
 * its namespace alive, so none stays without use.
 */
#ifndef NETOBS_TRACE_TRACE_HOOKS_H
#define NETOBS_TRACE_TRACE_HOOKS_H

#include "base/log.h"
#include "engine/trace_programs.h"
#include "host/netns_search.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_SPACES_MAX = 64, TRACE_UNHOOKED_MAX = 1024 };

struct trace_space {
	uint32_t inode;
	bool is_hooked;
	bool is_wanted; /* it is looked for among all processes, */
	bool is_sought; /* from the first one of this walk on */
	uint32_t failures;
	uint32_t first_link; /* of trace_programs_hook() */
	int64_t used_ns;     /* CLOCK_BOOTTIME: of its last event */
	int64_t retry_ns;    /* before, it is not looked for again */
	int links[TRACE_HOOK_LINKS];
};

/* Zeroes: of no namespace. */
struct trace_hooks {
	const struct trace_programs *programs;
	const struct log *log;
	struct trace_space *spaces; /* NULL: hooks are not wanted, or cannot be attached to */
	uint32_t n;
	uint32_t last; /* whose event was last: most have several there */
	struct netns_walk walk;
	uint32_t unhooked[TRACE_UNHOOKED_MAX]; /* had events, and have not been attached to */
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

/** Use the calling thread's namespace from the start. */
void trace_hooks_note_own(struct trace_hooks *hooks, int64_t now_ns);

/** Leave namespaces without events for some time, and look for others among processes, for some milliseconds. */
void trace_hooks_sweep(struct trace_hooks *hooks, int64_t now_ns);

/** @return the namespaces that have not been attached to; those beyond TRACE_UNHOOKED_MAX are one */
uint64_t trace_hooks_count_unhooked(const struct trace_hooks *hooks);

/** Leave all. */
void trace_hooks_leave(struct trace_hooks *hooks);

/** Leave all namespaces, and free the list. */
void trace_hooks_close(struct trace_hooks *hooks);

#endif
