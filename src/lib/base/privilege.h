/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Capabilities, and what this thread cannot do without them. */
#ifndef NETOBS_BASE_PRIVILEGE_H
#define NETOBS_BASE_PRIVILEGE_H

#include "log.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

/* The capabilities(7) that this thread lacks, to name them where the kernel does not. */

/* Capabilities as masks. */
#define PRIVILEGE_MAPS (1ULL << CAP_BPF)
#define PRIVILEGE_ATTACH (1ULL << CAP_NET_ADMIN)
#define PRIVILEGE_PROGRAMS \
	(PRIVILEGE_MAPS | PRIVILEGE_ATTACH | 1ULL << CAP_PERFMON)
#define PRIVILEGE_NETNS (1ULL << CAP_SYS_ADMIN)
/* Capabilities to enter the namespace of any process. */
#define PRIVILEGE_PROCESSES (PRIVILEGE_NETNS | 1ULL << CAP_SYS_PTRACE)
#define PRIVILEGE_ALL (PRIVILEGE_PROGRAMS | PRIVILEGE_NETNS)

/*
 * @return the capabilities of @wanted that are not in effect: not held, or held in a user namespace
 *         only; 0 unless @err is one of privilege
 */
uint64_t privilege_missing(int err, uint64_t wanted);

/* " (missing: CAP_BPF, CAP_PERFMON)", or "" where none is. */
struct privilege_hint {
	char text[112];
};

struct privilege_hint privilege_hint(int err, uint64_t wanted);

/**
 * Keep the error of a public call that starts something, as log_keep_error() does.
 *
 * @return @err; -EPERM if it is for lack of some of @wanted
 */
int privilege_keep_error(const struct log *log, uint64_t wanted, int err);

/* The capabilities(7) that netobs may need, and those that this thread has. */

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
