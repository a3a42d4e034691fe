/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The members that records of all exporters have: the tuple of the packets, and the time. A
 * conversation has a tuple on each side of a NAT.
 */
#ifndef NETOBS_CLI_ANNOTATE_FLOW_FACE_H
#define NETOBS_CLI_ANNOTATE_FLOW_FACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_reader.h"

/* Addresses, ports and the protocol of packets in one direction. Without ports: 0. */
struct flow_face {
	uint8_t src[16], dst[16]; /* IPv4 is ::ffff:a.b.c.d */
	uint16_t src_port, dst_port;
	uint8_t proto;
	uint8_t zero[3];
};

/* Times of the first and the last packet, in ms since 1970. */
struct flow_span {
	int64_t start_ms, end_ms;
};

bool flow_face_has_ports(uint8_t proto);

bool flow_face_is_v4(const struct flow_face *face);

/**
 * Read other addresses and ports of a record of netobs, such as those with "Xlat" before their
 * names; the protocol is that of @face.
 *
 * @return false: the record has none
 */
bool flow_face_read_other(struct json_value record, const char *prefix,
			  const struct flow_face *face,
			  struct flow_face *ret_other);

/** @return the tuple of packets in the other direction */
struct flow_face flow_face_back(const struct flow_face *face);

bool flow_face_equal(const struct flow_face *a, const struct flow_face *b);

#endif
