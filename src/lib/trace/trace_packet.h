/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The headers of a packet, made from what an event of a trace says of it: addresses, ports, numbers, flags and
 * lengths are those of the packet, and what events do not have is 0: options, the window (which is 65535, as
 * readers take 0 for a full receiver) and, of packets with data, the checksum of the transport.
 */
#ifndef NETOBS_TRACE_PACKET_H
#define NETOBS_TRACE_PACKET_H

#include <stdbool.h>

#include <netobs/trace.h>

enum { TRACE_PACKET_MAX = 40 + 8 + 20 }; /* IPv6, of a fragment, TCP */

struct trace_packet {
	uint8_t bytes[TRACE_PACKET_MAX]; /* from the IP header on */
	uint32_t captured;		 /* bytes in use */
	uint32_t length; /* bytes of the packet, with its data */
};

/** @return false: the event has no packet */
bool trace_packet_make(const struct netobs_trace_event *event,
		       struct trace_packet *ret_packet);

#endif
