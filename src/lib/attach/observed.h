/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The observed interfaces and their programs: the state that hooks.h and
 * observation.h share, of which the second uses the first.
 *
 * Whether programs are on an interface is known in one place at a time: in the interface's
 * struct hooks, or, while a job attaches or detaches them, in that job. Pins (link_pins.h)
 * are a copy for the next process, made and removed by the thread that runs the job.
 */
#ifndef NETOBS_ATTACH_OBSERVED_H
#define NETOBS_ATTACH_OBSERVED_H

#include "attacher.h"
#include "base/loop.h"
#include "engine/tables.h"
#include "host/host.h"
#include "host/selection.h"

enum { LINK_KINDS = 2 };

/* The programs and jobs of a namespace. */
struct netns_programs {
	/* Indexed by link and observed direction; NULL until needed. */
	struct shared_fd *programs[LINK_KINDS][2];
	uint32_t n_jobs;
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

#endif
