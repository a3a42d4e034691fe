/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Numbers and names in the form that people read. */
#ifndef NETOBS_SERVICE_TEXT_HUMAN_H
#define NETOBS_SERVICE_TEXT_HUMAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <netobs/drop.h>
#include <netobs/flow.h>

#include "base/text.h"

struct netobs_process;
struct netobs_stats;

/* "99999", "123k", "1.23M" */
void human_count(char *buf, size_t size, uint64_t count);

/* "999 B", "1.23 kB": powers of 1000 */
void human_bytes(char *buf, size_t size, uint64_t bytes);

/* "1.23 Mb/s"; "-" in less than 100 ms, of which a rate would say nothing */
void human_rate(char *buf, size_t size, uint64_t bytes, int64_t ns);

/* "1234": packets per second; "-" as for a rate */
void human_pace(char *buf, size_t size, uint64_t packets, int64_t ns);

/* "45.6 us", "1.23 ms", "999 s"; "-": 0, which is not known */
void human_latency(char *buf, size_t size, uint64_t ns);

/* "3 ms", "4.2 s", "5m06s", "7h08m"; "<1 ms" also for a single moment */
void human_duration(char *buf, size_t size, int64_t ns);

/* "12:34:56.789" in local time; on another day "2020-03-01 12:34:56" */
void human_time(char *buf, size_t size, int64_t ns);

/* human_endpoint() of an address. */
void human_address(char *buf, size_t size, const uint8_t ip[16], uint16_t port);

/* TCP flags as letters, ICMP types by name; empty for other protocols. */
void human_info(char *buf, size_t size, const struct netobs_flow *flow);

/* "eth0 in, eth1 out, vlan 10, vxlan 42" */
void human_where(char *buf, size_t size, const struct netobs_flow *flow);

/* @return the plural noun of the unit that --sampling samples */
const char *human_sampled(enum netobs_sampling mode);

uint64_t human_lost_packets(const struct netobs_stats *stats);

/* @return unparsed IP packets; ARP and other protocols are left out, as they are no fault */
uint64_t human_unparsed_packets(const struct netobs_stats *stats);

/* The ends that NAT changes, "src 198.51.100.1:20000, was dst 192.0.2.1:80"; "": none is known. */
void human_translation(char *buf, size_t size, const struct netobs_flow *flow);

/* The reason of the flow's last dropped packet, "NO_SOCKET"; "": it is not known, or none was. */
void human_drop_cause(char *buf, size_t size, const struct netobs_flow *flow);

/* "curl[1234] -> nginx[80]", with an arrow; NULL: not known */
void human_processes(char *buf, size_t size, const struct netobs_process *src,
		     const struct netobs_process *dst);

/* ---- Drop text ------------------------------------------------------------------------- */

/* @return the cause without the prefix that nearly all names have */
static inline const char *drop_cause_text(const char *cause)
{
	static const char prefix[] = "SKB_DROP_REASON_";
	const size_t len = sizeof(prefix) - 1;

	return strncmp(cause, prefix, len) ? cause : cause + len;
}

/* "NO_SOCKET"; "": the kernel states none */
static inline const char *drop_reason_text(const struct netobs_drop *drop)
{
	return drop_cause_text(drop->cause);
}

#endif
