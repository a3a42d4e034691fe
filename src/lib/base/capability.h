/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The capabilities(7) that netobs may need, and those that this thread has. */
#ifndef NETOBS_BASE_CAPABILITY_H
#define NETOBS_BASE_CAPABILITY_H

#include <stdbool.h>
#include <stdint.h>

struct capability {
	const char *name, *purpose;
	int number;
	bool is_implied; /* by CAP_SYS_ADMIN */
};

enum { CAPABILITIES = 7 };

extern const struct capability capabilities[CAPABILITIES];

/*
 * Read the mask of the capabilities in effect.
 *
 * @return 0, or -errno
 */
int capability_read_held(uint64_t *ret_held);

/* @return whether @held has it, or one that implies it */
bool capability_is_held(const struct capability *capability, uint64_t held);

/*
 * @return whether this process is in a user namespace that it or a container made: for BPF, the kernel
 *         counts capabilities of the initial one only
 */
bool capability_is_namespaced(void);

#endif
