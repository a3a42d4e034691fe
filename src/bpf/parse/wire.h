/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packets of a buffer on the wire: the segments that GSO will make of it, or
 * GRO made it from, each with its own copy of the headers.
 */
#ifndef NETOBS_BPF_PARSE_WIRE_H
#define NETOBS_BPF_PARSE_WIRE_H

#include "packet.h"

struct buffer {
	__u32 len;     /* with the link header */
	__u32 tag_len; /* of a VLAN tag that the kernel keeps beside the frame */
	__u32 gso_segs; /* 0 with a gso_size: the sender did not say (virtio) */
	__u32 gso_size;
};

struct wire_size {
	__u64 packets;
	__u64 bytes; /* from the IP header on, without Ethernet padding */
	__u64 l2_bytes;
};

static __always_inline __u32 wire_segments(const struct buffer *buf,
					   __u32 header_end)
{
	if (buf->gso_segs)
		return buf->gso_segs;
	if (buf->len <= header_end)
		return 1;
	return (buf->len - header_end + buf->gso_size - 1) / buf->gso_size;
}

static __always_inline struct wire_size wire_size(const struct packet *pkt,
						  const struct buffer *buf)
{
	__u32 l3_len = buf->len > pkt->l3_offset ? buf->len - pkt->l3_offset : 0;
	struct wire_size size = { .packets = 1, .bytes = l3_len };
	__u32 headers;

	if (buf->gso_size)
		size.packets = wire_segments(buf, pkt->header_end);
	if (size.packets == 1) {
		if (pkt->ip_len && pkt->ip_len < l3_len)
			size.bytes = pkt->ip_len;
		size.l2_bytes = buf->len + buf->tag_len;
		return size;
	}
	headers = pkt->header_end > pkt->l3_offset ?
			  pkt->header_end - pkt->l3_offset :
			  0;
	size.bytes += (size.packets - 1) * headers;
	size.bytes -= size.packets * pkt->unsent;
	size.l2_bytes =
		size.bytes + size.packets * (pkt->l3_offset + buf->tag_len);
	return size;
}

#endif
