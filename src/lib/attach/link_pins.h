/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Links and filters that outlive their process: pinned in the directory `links` of a set
 * (engine/pinned.h), by the numbers of their namespace and interface. Of a filter it is the
 * program array that is pinned, and its name has what the filter is known by.
 *
 * Any thread may call these. @pins is the directory. link_pins_add() and those that remove the
 * pins of an attachment take NULL, too, and do nothing then.
 */
#ifndef NETOBS_ATTACH_LINK_PINS_H
#define NETOBS_ATTACH_LINK_PINS_H

#include "attach.h"
#include "base/io.h"

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
 * @param on_pin  takes a link or filter over; what cannot be opened is skipped, and
 *                what is left in @pin->hook is closed
 * @return how many have been opened; -EPERM, -EACCES: there are some that must not be;
 *         others as from openat(2)
 */
int link_pins_each(const struct shared_fd *pins,
		   void (*on_pin)(void *ctx, struct link_pin *pin), void *ctx);

#endif
