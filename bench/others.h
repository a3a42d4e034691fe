/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* How much of the machine is not left to a measurement. */
#ifndef NETOBS_BENCH_OTHERS_H
#define NETOBS_BENCH_OTHERS_H

/* A run in which others took more of one CPU is repeated. */
#define OTHERS_MOST 0.05

/**
 * CPU seconds, since the machine started, of all processes but this one and its descendants,
 * with those of their children that have ended; and what a hypervisor gave to other guests.
 * Work for this process in threads of the kernel is not among them. Differences count: the
 * time of a process whose parent does not wait for it is missing when it has ended.
 */
double others_cpu_seconds(void);

#endif
