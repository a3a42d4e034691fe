/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the parts of UDP datagrams, and of ICMP echoes, that packets carry. */
#ifndef NETOBS_BPF_TRACE_DATAGRAMS_H
#define NETOBS_BPF_TRACE_DATAGRAMS_H

#include "bpf/parse/packet.h"
#include "events.h"
#include "nat.h"

enum {
	FRAGMENT_UNIT = 8, /* bytes that an offset of IPv4 counts */
	IPV6_FRAGMENT_HEADER = 8,
	IPV6_FRAGMENT_MASK = 0xfff8,
	UDP_HEADER = 8,
	UDP_LENGTH_BACK = 4, /* from the data of UDP to the length in its header */
	DATA_HASHED = 64,    /* bytes of a datagram's data */
	ICMP_PARSED = 4,     /* bytes of its header that the parser takes */
};

/* Only the first fragment of a datagram has ports. */
struct piece_key {
	struct ip_addr src, dst;
	__u32 id;
	__u32 proto; /* IPv6: 0, as a later fragment may name an extension header instead */
};

struct piece_ports {
	__u16 src, dst;
	/* Bytes of extension headers of IPv6 in front of the datagram, which offsets of fragments count. */
	__u16 extensions;
	__u8 is_reply;
	__u8 proto;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TRACE_FRAGMENTS);
	__type(key, struct piece_key);
	__type(value, struct piece_ports);
} trace_fragments SEC(".maps");

/* Rejected flows: their datagrams do not begin a connection again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TRACE_REFUSED);
	__type(key, struct trace_tuple);
	__type(value, __u64);
} trace_refused SEC(".maps");

struct echo_wire {
	__u16 id, seq;
};

static __always_inline void fill_piece_key(struct piece_key *key,
					   const struct packet *pkt)
{
	key->src = pkt->key.src;
	key->dst = pkt->key.dst;
	key->id = pkt->fragment_id;
	key->proto = pkt->key.flags & KEY_IPV6 ? 0 : pkt->key.proto;
}

/* Note the ports for later fragments. Tunnels within fragments are not followed. */
static __always_inline void note_fragment(const struct packet *pkt,
					  const struct ends *ends,
					  const struct point *point)
{
	struct piece_ports ports = { .src = ends->src_port,
				     .dst = ends->dst_port,
				     .extensions = point->extensions,
				     .is_reply = ends->is_reply,
				     .proto = ends->proto };
	struct piece_key key;

	fill_piece_key(&key, pkt);
	bpf_map_update_elem(&trace_fragments, &key, &ports, BPF_ANY);
}

static __always_inline bool find_fragment(const struct packet *pkt,
					  struct ends *ends, struct point *point)
{
	const struct piece_ports *ports;
	struct piece_key key;

	fill_piece_key(&key, pkt);
	ports = bpf_map_lookup_elem(&trace_fragments, &key);
	if (!ports)
		return false;
	ends->src_port = ports->src;
	ends->dst_port = ports->dst;
	ends->is_reply = ports->is_reply;
	ends->proto = ports->proto;
	point->extensions = ports->extensions;
	return true;
}

/*
 * @return where a later fragment begins in the fragmented part. The parser stops behind the header
 *         of a fragment, so that is the last one.
 */
static __always_inline __u16 fragment_offset(const __u8 *headers,
					     const struct packet *pkt)
{
	__u32 at = pkt->header_end;
	__u8 wire[2] = { 0 };

	if (headers[0] >> 4 == 4)
		return ((headers[6] << 8 | headers[7]) & IPV4_OFFSET_MASK) *
		       FRAGMENT_UNIT;
	at -= IPV6_FRAGMENT_HEADER - 2;
	if (at > CURSOR_LIMIT ||
	    bpf_probe_read_kernel(wire, sizeof(wire), headers + at))
		return 0;
	return (wire[0] << 8 | wire[1]) & IPV6_FRAGMENT_MASK;
}

/* @return bytes of extension headers between the first fragment's header and the datagram at @start */
static __always_inline __u16 count_extensions(const __u8 *headers, __u32 start)
{
	__u32 at = sizeof(struct ipv6_wire);
	__u8 proto = headers[6];

	if (headers[0] >> 4 == 4)
		return 0;
	for (int i = 0; i < IPV6_EXT_DEPTH && is_extension(proto); i++) {
		const bool is_fragment = proto == IP_PROTO_FRAGMENT;
		__u8 ext[2];

		if (at > CURSOR_LIMIT ||
		    bpf_probe_read_kernel(ext, sizeof(ext), headers + at))
			return 0;
		at += sizeof(struct ext_wire) + extension_rest(proto, ext[1]);
		if (is_fragment)
			return start > at ? start - at : 0;
		proto = ext[0];
	}
	return 0;
}

static __always_inline bool read_echo(const __u8 *headers,
				      const struct packet *pkt,
				      struct ends *ends, struct point *point)
{
	const __u32 at = pkt->header_end;
	struct echo_wire echo;

	if (!is_echo(ends->proto, pkt->key.dst_port) || at > CURSOR_LIMIT ||
	    bpf_probe_read_kernel(&echo, sizeof(echo), headers + at))
		return false;
	ends->is_reply = is_echo_reply(ends->proto, pkt->key.dst_port);
	ends->src_port = ends->dst_port = bpf_ntohs(echo.id);
	point->seq = bpf_ntohs(echo.seq);
	return true;
}

/*
 * Hash the length of a datagram of UDP and the first bytes of its data, which are equal on all hosts: NAT changes
 * addresses, ports and the checksum.
 *
 * @param at     where its data begin in @headers
 * @param read   bytes that @headers has
 * @param words  room for DATA_HASHED bytes
 * @return 0: not all of these bytes are there
 */
static __always_inline __u32 hash_data(const __u8 *headers, __u32 at,
				       __u32 read, __u64 *words)
{
	__u8 wire[2] = { 0 };
	__u64 hash, len;

	if (at < UDP_LENGTH_BACK || at > CURSOR_LIMIT ||
	    bpf_probe_read_kernel(wire, sizeof(wire),
				  headers + at - UDP_LENGTH_BACK))
		return 0;
	hash = wire[0] << 8 | wire[1];
	len = hash > UDP_HEADER ? hash - UDP_HEADER : 0;
	len = LIMITED(len, DATA_HASHED);
	if (at + len > read)
		return 0;
	__builtin_memset(words, 0, DATA_HASHED);
	if (bpf_probe_read_kernel(words, len, headers + at))
		return 0;
	for (__u32 i = 0; i < DATA_HASHED / sizeof(*words); i++) {
		hash = (hash ^ bpf_be64_to_cpu(words[i])) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return (__u32)hash ?: 1;
}

/*
 * @headers: from the outermost IP header on; @total: bytes of the packet from there on
 * @return false: no datagram of a protocol that is traced
 */
static __always_inline bool read_datagram(const __u8 *headers,
					  const struct packet *pkt, __u32 total,
					  struct ends *ends, struct point *point)
{
	__u32 start = pkt->header_end;

	point->ack = pkt->key.flags & KEY_IPV6 ? bpf_ntohl(pkt->fragment_id) :
						 bpf_ntohs(pkt->fragment_id);
	point->is_fragment = pkt->fragment != FRAGMENT_NONE;
	if (point->is_fragment && pkt->key.tunnel)
		return false;
	if (pkt->fragment == FRAGMENT_LATER) {
		if (!find_fragment(pkt, ends, point))
			return false;
		point->piece = fragment_offset(headers, pkt) - point->extensions;
	} else if (is_icmp(ends->proto)) {
		start -= ICMP_PARSED;
		if (!read_echo(headers, pkt, ends, point))
			return false;
	} else {
		start -= UDP_HEADER;
	}
	point->length = total > start ? total - start : 0;
	return point->length;
}

#endif
