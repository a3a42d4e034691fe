/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records as a busy host has them, made ahead of time. */
#ifndef NETOBS_BENCH_EXPORT_FLOWS_H
#define NETOBS_BENCH_EXPORT_FLOWS_H

#include <netobs/flow.h>

/*
 * @n records, each other one of IPv6, of TCP mostly, seen at one or two points. The
 * caller frees them, as one piece. NULL: -ENOMEM.
 */
struct netobs_flow *export_flows_make(uint32_t n);

#endif
