/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Puts the programs on an interface, beside whatever others have there, and
 * takes away nothing but its own.
 */
#ifndef NETOBS_ATTACH_ATTACH_H
#define NETOBS_ATTACH_ATTACH_H

#include "clsact.h"
#include "engine/program_set.h"

#include <stdbool.h>

/* The link or filter that attaches a program to one direction of an interface. */
struct hook {
	int link_fd; /* tcx: closing it detaches */
	struct clsact_filter filter;
};

static inline bool hook_is_attached(const struct hook *hook)
{
	return hook->link_fd >= 0 || hook->filter.jump_fd >= 0;
}

struct attachment {
	struct hook hooks[2]; /* indexed by enum direction */
};

#define HOOK_NONE ((struct hook){ .link_fd = -1, .filter = CLSACT_FILTER_NONE })
#define ATTACHMENT_NONE ((struct attachment){ { HOOK_NONE, HOOK_NONE } })

struct attach_options {
	const struct log *log;
	bool use_tcx;
	bool use_clsact;
	bool may_expedite; /* grace periods may be expedited, see expedite.h */
	enum netobs_attach_order order; /* order of tcx links */
	bool directions[2];		/* indexed by enum direction */
};

/* @return the options that those of the public API mean; @disable: 1 << enum netobs_feature_id */
struct attach_options attach_options_of(const struct log *log, uint64_t disable,
					enum netobs_direction direction,
					enum netobs_attach_order order);

/*
 * Attach in the calling thread's network namespace. -ENODEV: no such
 * interface. On failure nothing is left.
 */
int attach(const struct attach_options *options, uint32_t ifindex,
	   const char *name, const struct programs *programs,
	   struct attachment *attachment);

/*
 * Put other programs in the place of those that are attached, each at once: a packet gets
 * to the old one or to the new one. @return 0, or -errno
 */
int attachment_replace(const struct attachment *attachment,
		       const struct programs *programs);

/* Forget links and filters that disappeared with their interface. */
void attachment_verify(struct attachment *attachment, uint32_t ifindex);

/* When this returns, none of the programs runs any more. */
void detach(const struct log *log, struct attachment *attachment,
	    uint32_t ifindex);

/* Close filters that disappeared with the interface. */
void attachment_forget_filters(struct attachment *attachment);

/* Close links and filters without detaching: the interface is gone. */
void attachment_drop(struct attachment *attachment);

bool is_attached(const struct attachment *attachment);

/* @return whether a tcx link is part of it */
bool has_link(const struct attachment *attachment);

#endif
