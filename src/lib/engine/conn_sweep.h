/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Frees the bodies of connections that have ended, or never opened, for other connections.
 *
 * A program may have found an entry just before it is evicted. So one sweep removes the entry from
 * its slot, where programs cannot find it any more, and the next sweep offers its body: by then,
 * all programs that may use the body have ended.
 */
#ifndef NETOBS_ENGINE_CONN_SWEEP_H
#define NETOBS_ENGINE_CONN_SWEEP_H

#include "connections.h"

/**
 * Sweep, if more than a quarter of the bodies is in use and there could be more of them. The caller
 * guarantees that each program that runs during a call has ended before the next call. Takes a few
 * milliseconds at most.
 *
 * @param now_ns    by the programs' clock
 * @param after_ns  how long the values of a connection are needed after its last packet
 */
void connections_sweep(struct connections *table, uint64_t now_ns,
		       uint64_t after_ns);

#endif
