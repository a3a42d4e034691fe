/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The programs that see dropped packets, in the variant whose arguments this kernel has. */
#ifndef NETOBS_DROPS_DROP_PROGRAMS_H
#define NETOBS_DROPS_DROP_PROGRAMS_H

#include "bpf/drops.h"
#include "engine/program_set.h"

#include <stdbool.h>

/* All zeroes: off. Must not be moved while it is open. */
struct drop_programs {
	struct program_set set;
	struct attach_point points[2];
	bool has_reasons;
	struct drop_state *state;	     /* mapped */
	int drops_fd, rest_fd, functions_fd; /* descriptors of the set's maps */
};

/**
 * Load the programs and attach them.
 *
 * @param log  used during this call only; NULL: log nothing
 * @return 0; -errno, which is logged, and nothing stays loaded
 */
int drop_programs_open(struct drop_programs *programs, bool no_reasons,
		       const struct log *log);

/* Detach; the maps stay. A program may still run on another CPU. */
void drop_programs_detach(struct drop_programs *programs);

void drop_programs_close(struct drop_programs *programs);

/** @return drops that no program counted, because both were interrupted */
uint64_t drop_programs_missed(const struct drop_programs *programs);

#endif
