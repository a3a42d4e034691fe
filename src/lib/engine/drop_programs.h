/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The programs that see dropped packets: those of their arguments that the kernel has. */
#ifndef NETOBS_ENGINE_DROP_PROGRAMS_H
#define NETOBS_ENGINE_DROP_PROGRAMS_H

#include "bpf/drops.h"
#include "program_set.h"

#include <stdbool.h>

/* Zeroes: off. Stays where it is while it is open. */
struct drop_programs {
	struct program_set set;
	struct attach_point points[2];
	bool has_reasons;
	struct drop_state *state;	     /* mapped */
	int drops_fd, rest_fd, functions_fd; /* the set's */
};

/**
 * Load the programs and attach them.
 *
 * @param log  of this call; or NULL: silent
 * @return 0; -errno, which is logged, and nothing stays loaded
 */
int drop_programs_open(struct drop_programs *programs, bool no_reasons,
		       const struct log *log);

/* Detach; the maps stay. A program may still run on another CPU. */
void drop_programs_detach(struct drop_programs *programs);

void drop_programs_close(struct drop_programs *programs);

/** @return how often neither program ran, because both were interrupted */
uint64_t drop_programs_missed(const struct drop_programs *programs);

#endif
