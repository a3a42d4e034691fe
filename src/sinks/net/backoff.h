/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* How long to wait before something is tried again. */
#ifndef NETOBS_SINKS_NET_BACKOFF_H
#define NETOBS_SINKS_NET_BACKOFF_H

#include <stdint.h>

/*
 * Twice as long after each of @failures, from @first_ms to @most_ms; less by up to a
 * quarter, at random: many hosts may have lost the same collector.
 */
uint32_t backoff_ms(uint32_t first_ms, uint32_t most_ms, uint32_t failures);

#endif
