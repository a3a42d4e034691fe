/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Links and filters that outlive their process: pinned in the directory `links` of a set
 * (engine/pinned.h), by the numbers of their namespace and interface. Of a filter it is the
 * program array that is pinned, and its name has what the filter is known by.
 *
 * All but link_pins_adopt() may be called by any thread, and with NULL for @pins, the
 * directory: then nothing is pinned.
 */
#ifndef NETOBS_ATTACH_LINK_PINS_H
#define NETOBS_ATTACH_LINK_PINS_H

#include "attach.h"
#include "base/shared_fd.h"

/* Of one direction of an interface. */
struct link_pin {
	uint32_t netns;
	uint32_t ifindex;
	int direction;
	struct hook hook; /* open only in link_pins_each() */
};

/** Pin what is attached, unless it is. @return 0, or -errno */
int link_pins_add(const struct shared_fd *pins, uint16_t netns,
		  uint32_t ifindex, const struct attachment *attachment);

/** Remove the pins of what is attached, which stays so. */
void link_pins_remove(const struct shared_fd *pins, uint16_t netns,
		      uint32_t ifindex, const struct attachment *attachment);

/** The same of what was attached @before, and is not @now. */
void link_pins_remove_others(const struct shared_fd *pins, uint16_t netns,
			     uint32_t ifindex, const struct attachment *before,
			     const struct attachment *now);

/**
 * Open all that is pinned.
 *
 * @param on_pin  takes a link or filter over; what cannot be opened is skipped, and
 *                what is left in @pin->hook is closed
 * @return how many have been opened; -EPERM, -EACCES: there are some that must not be;
 *         others as from openat(2)
 */
int link_pins_each(const struct shared_fd *pins,
		   void (*on_pin)(void *ctx, struct link_pin *pin), void *ctx);

struct observation;
struct selection;

/**
 * Take over the links of an earlier process: those of interfaces that are selected are
 * theirs from now on, all others are removed. Call it when all namespaces are followed.
 *
 * @return false: other interfaces begin or end to be observed, while these have been all
 *         the time
 */
bool link_pins_adopt(struct observation *observation,
		     const struct selection *selection);

#endif
