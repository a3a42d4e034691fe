/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The state of a tracer, shared by its source files. */
#ifndef NETOBS_TRACE_TRACE_STATE_H
#define NETOBS_TRACE_TRACE_STATE_H

#include "base/clock.h"
#include "base/life.h"
#include "base/log.h"
#include "base/slots.h"
#include "bpf/trace.h"
#include "drops/drop_names.h"
#include "trace_programs.h"
#include "filter/filter.h"
#include "host/netns.h"
#include "host_records.h"
#include "journeys.h"
#include "queues.h"
#include "threads.h"
#include "traced.h"
#include "turns.h"
#include "who/container_facts.h"

#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>

struct map_grace;

/* ---- Processes ----------------------------------------------------------------------- */

/*
 * Processes whose connections are chosen: by their number, their command, or the container that
 * their control group is in. Data from /proc is kept for a second.
 */

enum { TRACE_PROCESSES_KNOWN = 256 };

/* Data of a process that was read from /proc. */
struct trace_known_process {
	uint32_t pid; /* 0: none */
	bool is_chosen;
	int64_t until_ns; /* CLOCK_BOOTTIME */
};

/* Its container, likewise. */
struct trace_known_container {
	uint32_t pid; /* 0: none */
	int64_t until_ns;
	char id[sizeof(((struct cgroup_names *)NULL)->container_id)];
};

/* A process must match all members that are set; 0 and "": not set. */
struct trace_process {
	uint32_t pid;
	char command[16];
	char container[sizeof(((struct cgroup_names *)NULL)->container_id)];
	struct trace_known_process known[TRACE_PROCESSES_KNOWN]; /* by the pid */
};

/** @return 0; -EINVAL: an option is wrong, which is logged */
int trace_process_read(struct trace_process *process,
		       const struct netobs_trace_opts *opts,
		       const struct log *log);

/** @return whether connections are chosen by process; else those of all processes are */
bool trace_process_is_given(const struct trace_process *process);

/**
 * @param pid      as the initial namespace counts
 * @param command  it may fill the array
 * @param thread   name of the thread, likewise
 * @return whether the process is chosen
 */
bool trace_process_is(struct trace_process *process, uint32_t pid,
		      const char command[16], const char thread[16]);

/** @return the names of the control group of a process; "": it has none, or has ended */
struct cgroup_names trace_process_names(uint32_t pid);

/* ---- Hooks of netfilter -------------------------------------------------------------- */

/*
 * Netfilter's hooks belong to a network namespace. The tracer attaches its programs in the
 * namespaces that chosen connections pass, from their first event there until some time after the
 * last one. A link keeps its namespace alive, so unused ones are removed.
 */

enum { TRACE_SPACES_MAX = 64, TRACE_UNHOOKED_MAX = 1024 };

struct trace_space {
	uint32_t inode; /* first: the key */
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
	/* Open, with netfilter's programs; NULL: hooks are not wanted, or cannot be attached to */
	const struct trace_programs *programs;
	const struct log *log;
	struct slots spaces; /* of struct trace_space */
	struct netns_walk walk;
	struct slots unhooked; /* inodes: they had events, but the tracer is not attached */
	bool has_more_unhooked; /* others had events while unhooked was full */
	bool is_failure_logged;
};

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

/* ---- The tracer ---------------------------------------------------------------------- */

struct trace {
	struct life life; /* first */
	struct netobs_trace_opts opts;
	struct filter *filter;
	struct trace_process process;
	bool wants_datagrams; /* UDP and ICMP may be chosen */
	bool has_early;	      /* chosen connections may have kept reports */
	uint32_t spaces[TRACE_SPACES_MAX]; /* namespaces that count; n_spaces 0: all */
	uint32_t n_spaces;
	int read_timer;
	int64_t slice_end_ns, sweep_ns, hooks_ns, list_ns;

	struct trace_programs programs;
	struct trace_hooks hooks;
	struct drop_names names;
	struct clock clock;
	struct journeys *journeys; /* NULL: not wanted, also by turns, also of the next three */
	struct turns *turns;
	struct queues *queues;
	struct host_records *hosts;
	struct threads *threads; /* NULL: not wanted, or the kernel lacks support */
	struct trace_known_container containers[TRACE_PROCESSES_KNOWN]; /* by the pid */
	struct traced *traced;	/* by slot */
	struct trace_room room; /* of chosen connections */
	uint32_t n_chosen;
	uint32_t n_used;    /* slots, at the last sweep */
	uint32_t n_pending; /* reports that candidates keep, about */
	struct map_grace *grace;
	struct netobs_trace_stats stats;
};

/** @return the tracer; NULL: @netobs is none, or NULL */
struct trace *trace_of(const struct netobs *netobs);

/** Deliver a record. @ctx: the struct trace */
void trace_deliver(void *ctx, const struct netobs_record *record);

/** Set the alert for which a connection is traced, unless there is none. */
void trace_name_alert(const struct trace *trace, uint64_t connection,
		      int64_t *alert_ns, char alert[64]);

/* Turns, if they are wanted. */

/** @return 0; -ENOMEM */
int trace_turns_new(struct trace *trace);

/** Process a report of a program. */
void trace_take_report(struct trace *trace, const struct trace_report *report);

/** Deliver what chosen connections have kept since netobs_start(), which calls no callbacks. */
void trace_deliver_early(struct trace *trace);

/** @return the entry of the slot of a connection, which another connection may use */
struct traced *trace_slot(const struct trace *trace, uint64_t id);

/** @return the connection that has that tuple, or NULL */
struct traced *trace_find(const struct trace *trace,
			  const struct trace_tuple *tuple);

/** Update the time of the connection's last packet, also beyond max_events. */
void trace_note_last(const struct trace *trace, struct traced *traced);

/** Trace the connection, if there is room for one more. */
void trace_choose(struct trace *trace, struct traced *traced);

/** Free the connection's slot for another connection. */
void trace_end_connection(struct trace *trace, struct traced *traced);

/** Nothing chooses these datagrams: end the connection, and reject its tuples. */
void trace_turn_away(struct trace *trace, struct traced *traced);

/** @return the connection's events beyond max_events so far */
uint64_t trace_count_cut(const struct trace *trace, const struct traced *traced);

/** @return the container ID of a process, as it is or was in the last second; "": none */
const char *trace_find_container(struct trace *trace, uint32_t pid);

/* The choice of connections by filter expressions, from addresses and ports alone. */

/** @return whether an expression can match packets of these protocols; NULL matches all */
bool trace_may_match(const char *expression, const char *protocols);

/** @param filter  NULL: all. @return whether a segment of either direction matches */
bool trace_match(const struct filter *filter, const struct trace_tuple *tuple);

/* Layers of the points that programs report. */

/** @return 1 << enum trace_point of each point of @layers, which are 1 << enum netobs_trace_layer */
uint32_t trace_layers_points(uint32_t layers);

#endif
