/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Drop counters of interfaces of this network namespace: drops by network cards and drivers, before or
 * after the packets are the kernel's. Some drops of the kernel are in rx_dropped and tx_dropped, too.
 */
#ifndef NETOBS_CLI_DROPS_DROP_COUNTERS_H
#define NETOBS_CLI_DROPS_DROP_COUNTERS_H

#include <stdbool.h>

#include "service/options/args.h"

struct ifaddrs;

struct drop_counters {
	struct ifaddrs *before; /* counters as last printed; NULL: not printed yet */
};

/** @return whether @names have @name, or are none */
bool is_selected(const struct args_list *names, const char *name);

/* Print a line for each interface of @names whose counters have grown since the last call; nothing in the first. */
void drop_counters_print(struct drop_counters *counters,
			 const struct args_list *names);

void drop_counters_clear(struct drop_counters *counters);

#endif
