/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Gives the bodies of connections that have ended, or never opened, to others, instead of adding more.
 *
 * A program may have found an entry just before it goes. So one sweep takes the body away from its
 * place, where programs do not find the connection any more, and the next one offers the body:
 * until then, all programs of before have ended.
 */
#ifndef NETOBS_ENGINE_CONN_SWEEP_H
#define NETOBS_ENGINE_CONN_SWEEP_H

#include "connections.h"

/**
 * Sweep, if more than a quarter of the bodies is in use and there could be more of them. Each
 * program that ran during a call has ended at the next one. Takes a few milliseconds at most.
 *
 * @param now_ns    by the programs' clock
 * @param after_ns  since its last packet, the values of a connection are needed for so long
 */
void connections_sweep(struct connections *table, uint64_t now_ns,
		       uint64_t after_ns);

#endif
