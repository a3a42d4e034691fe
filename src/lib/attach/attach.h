/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Puts the programs on an interface, beside whatever others have there, and
 * takes away nothing but its own.
 */
#ifndef NETOBS_ATTACH_ATTACH_H
#define NETOBS_ATTACH_ATTACH_H

#include "catalogue/direction.h"
#include "base/log.h"
#include "engine/program_set.h"
#include "host/rtnl.h"
#include "base/io.h"

#include <netobs/flow.h>
#include <netobs/netobs.h>
#include <netobs/probe.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * COMPAT(<6.6): filters of the clsact qdisc, for kernels without tcx. All in
 * the calling thread's network namespace.
 */

enum {
	/* Late, so that others' filters come first; several observers share a host. */
	CLSACT_PRIORITY_FIRST = 0xfff0,
	CLSACT_PRIORITIES = 8,
};

static inline bool clsact_is_reserved(uint32_t priority)
{
	return priority - CLSACT_PRIORITY_FIRST < CLSACT_PRIORITIES;
}

/* Our filter; `jump_fd` is -1 when there is none. */
struct clsact_filter {
	int jump_fd; /* holds the program; without it the stub does nothing */
	uint32_t priority;
	uint32_t handle;
	uint32_t program_id; /* id of the stub */
};

#define CLSACT_FILTER_NONE ((struct clsact_filter){ .jump_fd = -1 })

/* Find out, as tcx_probe(), whether the kernel has qdiscs of @kind, of up to 7 characters. */
int clsact_probe(const char *kind);

/*
 * Make sure the qdisc is there and put the stub (src/bpf/stub.bpf.c) in front of
 * @program_fd, as a filter. Stubs of processes that are gone are removed.
 */
int clsact_add(uint32_t ifindex, enum direction direction, int program_fd,
	       struct clsact_filter *ret_filter);

/* Put @program_fd in the place of its program, at once. @return 0, or -errno */
int clsact_replace(const struct clsact_filter *filter, int program_fd);

/*
 * Remove the filter, and the qdisc when it was made for it or another of ours,
 * and no filters are left there.
 */
void clsact_delete(uint32_t ifindex, enum direction direction,
		   struct clsact_filter *filter);

/* Call @on_filter for the message of each filter there, in the order of their priorities. */
int clsact_for_each_filter(uint32_t ifindex, enum direction direction,
			   rtnl_message_fn on_filter, void *ctx);

/* False once the filter has disappeared with its interface, or another one has its place. */
bool clsact_is_there(uint32_t ifindex, enum direction direction,
		     const struct clsact_filter *filter);

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
	bool may_expedite; /* grace periods may be expedited, see expedite_begin() */
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

/* tcx links (Linux 6.6), with headers and a libbpf that do not know them. */

/*
 * Link a program to a direction of an interface, before all others or after
 * them.
 *
 * @return a file descriptor, or -errno
 */
int tcx_link(int program_fd, uint32_t ifindex, enum direction direction,
	     enum netobs_attach_order order);

/*
 * Find out whether the kernel has links, for those who may not make a network namespace to try it
 * in: request one that it understands and then has to refuse.
 *
 * @return 0, or why not
 */
int tcx_probe(int program_fd);

/* @return the interface of a link; 0: it has disappeared, and the link does nothing */
uint32_t tcx_link_ifindex(int link_fd);

enum { TCX_PROGRAMS_MAX = 64 }; /* the kernel's BPF_MPROG_MAX */

/*
 * The ids of the programs there, first to last.
 *
 * @return how many; -EINVAL: the kernel has no tcx; other -errno
 */
int tcx_programs(uint32_t ifindex, enum direction direction,
		 uint32_t ret_ids[TCX_PROGRAMS_MAX]);

/*
 * Linux waits for a grace period of RCU, 13 to 15 ms, for each tcx link that comes
 * or goes, and holds the lock of the network configuration meanwhile
 * (kernel/bpf/tcx.c, tcx_link_attach, tcx_uninstall), so that threads do not help: 1,000
 * interfaces would take half a minute, to be removed as well. While links change, the kernel is
 * asked to expedite grace periods (/sys/kernel/rcu_expedited): then a link takes 40 us. The
 * value written is a mark of netobs, which a later run of netobs takes back should
 * this one be killed in between; a value of the administrator's is left alone.
 */

/* @return 0: grace periods can be expedited; -errno: they cannot */
int expedite_probe(void);

/* Ask for expedited grace periods, or renew the request. */
void expedite_begin(void);

/* Withdraw the request, whichever run of netobs made it. */
void expedite_end(void);

/* ---- Shadows ----------------------------------------------------------------------------- */

/* Programs and filters that run before ours, and may hide packets from them. */

/* One direction of an interface of the calling thread's namespace. */
struct shadow_subject {
	uint32_t ifindex;
	enum direction direction;
	uint32_t program_id; /* ours, by a tcx link; 0: not known */
	uint32_t priority;   /* priority of our clsact filter; 0: no filter */
};

/* Find the first one; kind is NETOBS_SHADOW_NONE if there is none. */
void shadow_find(const struct shadow_subject *subject,
		 struct netobs_shadow *ret_shadow);

bool shadow_is_same(const struct netobs_shadow *a, const struct netobs_shadow *b);

/* Log the changes; @level: for a program that may hide packets. */
void shadow_log(const struct log *log, int level, const char *interface,
		const struct netobs_shadow *shadow);

/*
 * Processes without CAP_SYS_ADMIN, which cannot read the name of a program, recognise those of
 * another process of netobs by an abstract socket with the program's ID in its name.
 */

/* @return the socket, which is open as long as the program may be attached; or -errno */
int program_sign_open(int program_fd);

/* Accept and close the connections of processes that looked: the socket has room for some only. */
void program_sign_answer(int sign);

/* @return whether root, or this user, has such a socket in this network namespace */
bool program_sign_is_there(uint32_t program_id);

/* ---- Pins -------------------------------------------------------------------------------- */

/*
 * Links and filters that outlive their process: pinned in the directory `links` of a set
 * (engine/pinned.h), by the numbers of their namespace and interface. Of a filter it is the
 * program array that is pinned, and its name has what the filter is known by.
 *
 * Any thread may call these. @pins is the directory. link_pins_add() and those that remove the
 * pins of an attachment take NULL, too, and do nothing then.
 */

/* A pin of one direction of an interface. */
struct link_pin {
	uint32_t netns;
	uint32_t ifindex;
	int direction;
	struct hook hook; /* open only in link_pins_each() */
};

/** Pin an attachment, unless it is pinned. @return 0, or -errno */
int link_pins_add(const struct shared_fd *pins, uint16_t netns,
		  uint32_t ifindex, const struct attachment *attachment);

/** Remove the pins of an attachment, which stays attached. */
void link_pins_remove(const struct shared_fd *pins, uint16_t netns,
		      uint32_t ifindex, const struct attachment *attachment);

/** Remove the pin of one link or filter. */
void link_pins_remove_one(const struct shared_fd *pins,
			  const struct link_pin *pin);

/** link_pins_remove() for links and filters of @before that are not in @now. */
void link_pins_remove_others(const struct shared_fd *pins, uint16_t netns,
			     uint32_t ifindex, const struct attachment *before,
			     const struct attachment *now);

/**
 * Open all that is pinned.
 *
 * @param on_pin  takes a link or filter over; pins that cannot be opened are skipped, and
 *                a hook that it leaves in @pin->hook is closed
 * @return how many have been opened; -EPERM, -EACCES: there are some that must not be;
 *         others as from openat(2)
 */
int link_pins_each(const struct shared_fd *pins,
		   void (*on_pin)(void *ctx, struct link_pin *pin), void *ctx);

#endif
