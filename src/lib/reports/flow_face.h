/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The members that records of all exporters have: the tuple of the packets, and the time. A
 * conversation has a tuple on each side of a NAT.
 */
#ifndef NETOBS_REPORTS_FLOW_FACE_H
#define NETOBS_REPORTS_FLOW_FACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_reader.h"

/* ---- Flow fields ----------------------------------------------------------------------- */

/* Single values of records, in JSON. Each function leaves its result untouched where it fails. */

/**
 * Read a whole number without sign or exponent; "7.0" is 7.
 *
 * @return false: it is another, greater than @most, or no number
 */
bool flow_number_read(struct json_value value, uint64_t most,
		      uint64_t *ret_number);

/** @return false: it is no text of an IPv4 or IPv6 address */
bool flow_address_read(struct json_value value, uint8_t ret_ip[16]);

/* ---- Times of records, as exporters write them ----------------------------------------- */

/* Units of numeric times. */
enum time_unit { TIME_S, TIME_MS, TIME_US, TIME_NS };

struct flow_time {
	int64_t ms;	/* since 1970, at most 2^53; 0: not known */
	bool is_second; /* the exact time is within the second that begins then */
};

/**
 * Read a number, also as text, or a date such as "2026-11-21T17:06:31.709Z", with a "T" or a blank,
 * and "Z", "+01:00", "+0100" or nothing, which is the local time zone, at the end.
 *
 * @param ret_time  untouched on failure
 * @return false: it is none
 */
bool flow_time_read(struct json_value value, enum time_unit unit,
		    struct flow_time *ret_time);

/** @return the time in ms since 1970 that @value is, a number of them; 0: it is none */
int64_t flow_time_ms(struct json_value value);

/* ---- Flow face ------------------------------------------------------------------------- */

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

/* ---- Layouts --------------------------------------------------------------------------- */

/* Names of the ends and times of a flow, in JSON records of netobs and of other programs. */

/**
 * Read a record of any layout.
 *
 * @param ret_span  untouched if it has no time
 * @return false: it has no addresses or no protocol in a known layout, several addresses, protocols
 *         or ports, or what is none; *ret_face has no meaning
 */
bool layout_read(struct json_value record, struct flow_face *ret_face,
		 struct flow_span *ret_span);

/** Read a record of netobs. The rest is as above. */
bool layout_read_netobs(struct json_value record, struct flow_face *ret_face,
			struct flow_span *ret_span);

#endif
