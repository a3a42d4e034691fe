/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Programs and filters that run before ours, and may hide packets from them. */
#ifndef NETOBS_ATTACH_SHADOW_H
#define NETOBS_ATTACH_SHADOW_H

#include "catalogue/direction.h"
#include "base/log.h"

#include <netobs/flow.h>
#include <netobs/probe.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
