/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Programs and filters that run before ours, and may hide packets from them. */
#ifndef NETOBS_ATTACH_SHADOW_H
#define NETOBS_ATTACH_SHADOW_H

#include "catalogue/direction.h"
#include "base/log.h"

#include <netobs/flow.h>
#include <netobs/probe.h>
#include <stdbool.h>

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

#endif
