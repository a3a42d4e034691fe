// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include <netobs/trace.h>

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
	IPV4_HEADER = 20,
	IPV6_HEADER = 40,
	FRAGMENT_HEADER = 8,
	TCP_HEADER = 20,
	DATAGRAM_HEADER = 8, /* header of UDP, and of echoes */
	FRAGMENT_UNIT = 8,
	TTL = 64,
	WINDOW = 65535,
	LENGTH_MAX = 65535, /* that the length field of IP can express; 0: longer */
};

/* ---- Bytes ----------------------------------------------------------------------------- */

static uint8_t *put(struct netobs_trace_packet *packet, uint32_t len)
{
	uint8_t *at = packet->bytes + packet->captured;

	packet->captured += len;
	return at;
}

static void set16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void set32(uint8_t *at, uint32_t value)
{
	set16(at, value >> 16);
	set16(at + 2, value);
}

static uint32_t sum_bytes(uint32_t sum, const uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return sum;
}

/* RFC 1071. */
static uint32_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* ---- IP -------------------------------------------------------------------------------- */

static bool is_ipv4(const struct netobs_trace_event *event)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return !memcmp(event->src, mapped, sizeof(mapped));
}

static uint32_t length_field(uint32_t length)
{
	return length <= LENGTH_MAX ? length : 0;
}

/* All fragments have "more fragments", as the last one is unknown. */
static void put_ipv4(struct netobs_trace_packet *packet,
		     const struct netobs_trace_event *event)
{
	uint8_t *ip = put(packet, IPV4_HEADER);

	ip[0] = 0x45;
	set16(ip + 2, length_field(packet->length));
	set16(ip + 4, event->ip_id);
	if (event->is_fragment)
		set16(ip + 6, IP_MF | (uint32_t)event->offset / FRAGMENT_UNIT);
	ip[8] = TTL;
	ip[9] = event->protocol;
	memcpy(ip + 12, event->src + 12, 4);
	memcpy(ip + 16, event->dst + 12, 4);
	set16(ip + 10, fold(sum_bytes(0, ip, IPV4_HEADER)));
}

static void put_ipv6(struct netobs_trace_packet *packet,
		     const struct netobs_trace_event *event)
{
	uint8_t *ip = put(packet, IPV6_HEADER), *fragment;

	ip[0] = 0x60;
	set16(ip + 4, length_field(packet->length - IPV6_HEADER));
	ip[6] = event->is_fragment ? IPPROTO_FRAGMENT : event->protocol;
	ip[7] = TTL;
	memcpy(ip + 8, event->src, sizeof(event->src));
	memcpy(ip + 24, event->dst, sizeof(event->dst));
	if (!event->is_fragment)
		return;
	fragment = put(packet, FRAGMENT_HEADER);
	fragment[0] = event->protocol;
	set16(fragment + 2, (uint32_t)event->offset | 1);
	set32(fragment + 4, event->ip_id);
}

static uint32_t ip_header(const struct netobs_trace_event *event)
{
	if (is_ipv4(event))
		return IPV4_HEADER;
	return IPV6_HEADER + (event->is_fragment ? FRAGMENT_HEADER : 0);
}

/* ---- Transport ------------------------------------------------------------------------- */

static void fill_tcp(uint8_t *tcp, const struct netobs_trace_event *event)
{
	set16(tcp, event->src_port);
	set16(tcp + 2, event->dst_port);
	set32(tcp + 4, event->seq);
	set32(tcp + 8, event->ack);
	tcp[12] = TCP_HEADER / 4 << 4;
	tcp[13] = event->tcp_flags;
	set16(tcp + 14, WINDOW);
}

static void fill_udp(uint8_t *udp, const struct netobs_trace_event *event)
{
	set16(udp, event->src_port);
	set16(udp + 2, event->dst_port);
	/* A first fragment does not say how long the whole is. */
	set16(udp + 4, length_field(event->length));
	/* RFC 8200, 8.1: 0 is not allowed there. */
	if (!is_ipv4(event))
		set16(udp + 6, 0xffff);
}

static uint8_t echo_type(const struct netobs_trace_event *event)
{
	if (event->protocol == IPPROTO_ICMP)
		return event->direction ? ICMP_ECHOREPLY : ICMP_ECHO;
	return event->direction ? ICMP6_ECHO_REPLY : ICMP6_ECHO_REQUEST;
}

static void fill_echo(uint8_t *echo, const struct netobs_trace_event *event)
{
	echo[0] = echo_type(event);
	set16(echo + 4, event->src_port);
	set16(echo + 6, event->seq);
}

/* The checksum is known only for packets without data. */
static void fill_checksum(uint8_t *header, uint32_t len, uint32_t at,
			  const struct netobs_trace_event *event)
{
	const bool has_pseudo = event->protocol != IPPROTO_ICMP;
	uint32_t sum = 0;

	set16(header + at, 0);
	if (has_pseudo) {
		sum = sum_bytes(sum, event->src, sizeof(event->src));
		sum = sum_bytes(sum, event->dst, sizeof(event->dst));
		sum += event->protocol + len;
		/* ::ffff:0:0 of both is no part of IPv4. */
		if (is_ipv4(event))
			sum -= 2 * 0xffff;
	}
	set16(header + at, fold(sum_bytes(sum, header, len)));
}

static void put_transport(struct netobs_trace_packet *packet,
			  const struct netobs_trace_event *event)
{
	const uint32_t len = event->protocol == IPPROTO_TCP ? TCP_HEADER :
							      DATAGRAM_HEADER;
	uint8_t *header = put(packet, len);
	uint32_t checksum_at = 2;

	if (event->protocol == IPPROTO_TCP) {
		fill_tcp(header, event);
		checksum_at = 16;
	} else if (event->protocol == IPPROTO_UDP) {
		fill_udp(header, event);
		checksum_at = 6;
	} else {
		fill_echo(header, event);
	}
	if (packet->captured == packet->length)
		fill_checksum(header, len, checksum_at, event);
}

/* ---- Packets --------------------------------------------------------------------------- */

/* Processes move bytes; TCP and interfaces have packets. */
static bool has_packet(const struct netobs_trace_event *event)
{
	switch (event->point) {
	case NETOBS_TRACE_SEND:
	case NETOBS_TRACE_SENT:
	case NETOBS_TRACE_READY:
	case NETOBS_TRACE_READ:
	case NETOBS_TRACE_ACKED:
		return false;
	default:
		return true;
	}
}

static bool is_later_fragment(const struct netobs_trace_event *event)
{
	return event->is_fragment && event->offset;
}

int netobs_trace_packet_make(const struct netobs_trace_event *event,
			     struct netobs_trace_packet *ret_packet)
{
	uint32_t more;

	if (!event || !ret_packet || event->record.type != NETOBS_RECORD_TRACE ||
	    event->record.sz < offsetof(struct netobs_trace_event, owner_pid))
		return -EINVAL;
	if (!has_packet(event))
		return 0;
	/* Lengths of datagrams are with their headers. */
	more = event->protocol == IPPROTO_TCP ? TCP_HEADER : 0;
	*ret_packet = (struct netobs_trace_packet){
		.length = ip_header(event) + more + event->length,
	};
	if (is_ipv4(event))
		put_ipv4(ret_packet, event);
	else
		put_ipv6(ret_packet, event);
	if (!is_later_fragment(event))
		put_transport(ret_packet, event);
	if (ret_packet->captured > ret_packet->length)
		ret_packet->length = ret_packet->captured;
	return 1;
}
