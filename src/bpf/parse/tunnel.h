/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Encapsulations of IP: from the outer transport header to the inner network one. */
#ifndef NETOBS_BPF_PARSE_TUNNEL_H
#define NETOBS_BPF_PARSE_TUNNEL_H

#include "link.h"

enum {
	VXLAN_FLAG_VNI = 0x08000000,
	GRE_CHECKSUM = 0x8000,
	GRE_ROUTING = 0x4000,
	GRE_KEY = 0x2000,
	GRE_SEQUENCE = 0x1000,
	GRE_VERSION = 0x0007,
	ERSPAN_SESSION = 0x3ff,
	ROUTING_SEGMENTS = 4, /* RFC 8754, 8.1 */
	GTPU_VERSION = 0xf0,  /* and the protocol, which GTP' does not have */
	GTPU_VERSION_1 = 0x30,
	GTPU_EXTENSION = 0x04,
	GTPU_OPTIONS = 0x07,
	GTPU_USER_DATA = 0xff,
	GTPU_EXT_DEPTH = 3,
};

/* UDP destination ports; 0 is none. */
struct tunnel_ports {
	union {
		struct {
			__u16 vxlan[2];
			__u16 geneve;
			__u16 gtpu;
		};
		__u64 all;
	};
};

/* @return whether @port is one of @ports: its lane of 16 bits becomes zero */
static __always_inline bool is_tunnel_port(const struct tunnel_ports *ports,
					   __u16 port)
{
	const __u64 ones = 0x0001000100010001ULL;
	__u64 lanes = ports->all ^ port * ones;

	return port && (lanes - ones) & ~lanes & ones << 15;
}

static __always_inline enum tunnel_type
match_port(const struct tunnel_ports *ports, __u16 port)
{
	if (!port)
		return TUNNEL_NONE;
	if (port == ports->vxlan[0] || port == ports->vxlan[1])
		return TUNNEL_VXLAN;
	if (port == ports->geneve)
		return TUNNEL_GENEVE;
	return port == ports->gtpu ? TUNNEL_GTPU : TUNNEL_NONE;
}

static __always_inline enum tunnel_type
match_tunnel(const struct packet *pkt, const struct tunnel_ports *ports)
{
	if (pkt->fragment != FRAGMENT_NONE)
		return TUNNEL_NONE;
	switch (pkt->key.proto) {
	case IP_PROTO_UDP:
		return match_port(ports, pkt->key.dst_port);
	case IP_PROTO_GRE:
		return TUNNEL_GRE;
	case IP_PROTO_IPIP:
	case IP_PROTO_IPV6:
	case IP_PROTO_ETHERNET:
		return TUNNEL_IPIP; /* or of segments: see name_tunnel() */
	default:
		return TUNNEL_NONE;
	}
}

/* Parse the packet whose type the encapsulation names. Inner MACs are not kept. */
static __always_inline int parse_inner_type(struct cursor *c,
					    struct packet *pkt, int type)
{
	if (type == ETHERTYPE_TEB) {
		const struct ether_wire *eth = cursor_take(c, sizeof(*eth));

		if (!eth)
			return reject(UNPARSED_SHORT);
		type = bpf_ntohs(eth->type);
	}
	return parse_type(c, pkt, type);
}

static __always_inline int parse_vxlan(struct cursor *c, struct packet *pkt)
{
	const struct vxlan_wire *vxlan = cursor_take(c, sizeof(*vxlan));

	if (!vxlan)
		return reject(UNPARSED_SHORT);
	if (!(bpf_ntohl(vxlan->flags) & VXLAN_FLAG_VNI))
		return reject(UNPARSED_BAD_HEADER);
	pkt->key.vni = bpf_ntohl(vxlan->vni) >> 8;
	return ETHERTYPE_TEB;
}

static __always_inline int parse_geneve(struct cursor *c, struct packet *pkt)
{
	const struct geneve_wire *geneve = cursor_take(c, sizeof(*geneve));

	if (!geneve)
		return reject(UNPARSED_SHORT);
	if (geneve->version_optlen >> 6)
		return reject(UNPARSED_BAD_HEADER);
	if (!cursor_take(c, (geneve->version_optlen & 0x3f) * 4))
		return reject(UNPARSED_SHORT);
	pkt->key.vni = bpf_ntohl(geneve->vni) >> 8;
	return bpf_ntohs(geneve->type);
}

/* Bytes of the checksum, the key and the sequence number, without branches for the verifier to follow. */
static __always_inline __u32 gre_options_len(__u16 flags)
{
	return ((flags & GRE_CHECKSUM) >> 13) + ((flags & GRE_KEY) >> 11) +
	       ((flags & GRE_SEQUENCE) >> 10);
}

static __always_inline bool is_erspan(__u16 type)
{
	return type == ETHERTYPE_ERSPAN || type == ETHERTYPE_ERSPAN3;
}

/* Type II has 8 bytes and a sequence number in GRE. Type I has neither. */
static __always_inline int parse_erspan(struct cursor *c, __u16 type, __u16 flags)
{
	const struct erspan3_wire *erspan;

	if (type == ETHERTYPE_ERSPAN)
		return cursor_take(c, (flags & GRE_SEQUENCE) >> 9) ?
			       ETHERTYPE_TEB :
			       reject(UNPARSED_SHORT);
	erspan = cursor_take(c, sizeof(*erspan));
	if (!erspan || !cursor_take(c, (erspan->platform & 1) * 8))
		return reject(UNPARSED_SHORT);
	return erspan->frame_type & 0x7c ? reject(UNPARSED_NOT_IP) :
					   ETHERTYPE_TEB;
}

/* name_gre() reads the key. */
static __always_inline int parse_gre(struct cursor *c)
{
	const struct gre_wire *gre = cursor_take(c, sizeof(*gre));
	__u16 flags;
	int type;

	if (!gre)
		return reject(UNPARSED_SHORT);
	flags = bpf_ntohs(gre->flags);
	type = bpf_ntohs(gre->type);
	if (flags & (GRE_VERSION | GRE_ROUTING))
		return reject(UNPARSED_BAD_HEADER);
	if (!cursor_take(c, gre_options_len(flags)))
		return reject(UNPARSED_SHORT);
	if (is_erspan(type)) {
		type = parse_erspan(c, type, flags);
		if (type < 0)
			return type;
	}
	return (__u16)(type + cursor_unknown_zero(c)); /* one path goes on */
}

static __always_inline int parse_gtpu_extensions(struct cursor *c, __u8 next)
{
	for (int i = 0; i < GTPU_EXT_DEPTH && next; i++) {
		const struct gtpu_end_wire *end;
		struct cursor ahead = *c;
		const __u8 *len = cursor_take(&ahead, 1);
		__u32 size;

		if (!len)
			return reject(UNPARSED_SHORT);
		size = *len * sizeof(*end);
		if (!size)
			return reject(UNPARSED_BAD_HEADER);
		if (!cursor_take(c, size - sizeof(*end)))
			return reject(UNPARSED_SHORT);
		if (!cursor_settle(c))
			return reject(UNPARSED_TOO_DEEP);
		end = cursor_take(c, sizeof(*end));
		if (!end)
			return reject(UNPARSED_SHORT);
		next = end->next;
	}
	return next ? reject(UNPARSED_TOO_DEEP) : 0;
}

/* User data; other messages are the tunnel's own. */
static __always_inline int parse_gtpu(struct cursor *c, struct packet *pkt)
{
	const struct gtpu_wire *gtpu = cursor_take(c, sizeof(*gtpu));
	__u8 flags, next = 0;
	int ret;

	if (!gtpu)
		return reject(UNPARSED_SHORT);
	flags = gtpu->flags;
	if ((flags & GTPU_VERSION) != GTPU_VERSION_1)
		return reject(UNPARSED_BAD_HEADER);
	if (gtpu->type != GTPU_USER_DATA)
		return reject(UNPARSED_NOT_IP);
	pkt->key.vni = bpf_ntohl(gtpu->teid);
	if (flags & GTPU_OPTIONS) {
		const struct gtpu_options_wire *options =
			cursor_take(c, sizeof(*options));

		if (!options)
			return reject(UNPARSED_SHORT);
		next = flags & GTPU_EXTENSION ? options->next : 0;
	}
	ret = parse_gtpu_extensions(c, next);
	return ret ?: peek_ip(c);
}

/* The tunnel's own header. Returns the ethertype of what follows, or a rejection. */
static __always_inline int parse_tunnel_header(struct cursor *c,
					       struct packet *pkt,
					       enum tunnel_type tunnel)
{
	switch (tunnel) {
	case TUNNEL_VXLAN:
		return parse_vxlan(c, pkt);
	case TUNNEL_GENEVE:
		return parse_geneve(c, pkt);
	case TUNNEL_GRE:
		return parse_gre(c);
	case TUNNEL_GTPU:
		return parse_gtpu(c, pkt);
	default:
		return pkt->key.proto == IP_PROTO_ETHERNET ? ETHERTYPE_TEB :
							     peek_ip(c);
	}
}

/* Returns the ethertype of the inner network header, or a rejection. */
static __always_inline int parse_tunnel(struct cursor *c, struct packet *pkt,
					enum tunnel_type tunnel)
{
	int type = parse_tunnel_header(c, pkt, tunnel);

	if (type < 0 || (tunnel == TUNNEL_IPIP && type != ETHERTYPE_TEB))
		return type;
	if (!cursor_settle(c))
		return reject(UNPARSED_TOO_DEEP);
	return parse_inner_type(c, pkt, type);
}

/* The key of GRE, or the session of ERSPAN. @c: at the header of GRE. */
static __always_inline void name_gre(struct cursor *c, struct packet *pkt)
{
	const struct gre_wire *gre = cursor_take(c, sizeof(*gre));
	const struct gre_key_wire *key;
	const struct erspan_wire *erspan;
	struct cursor ahead = *c;
	__u16 flags;

	if (!gre)
		return;
	flags = bpf_ntohs(gre->flags);
	if (flags & GRE_KEY && cursor_take(&ahead, (flags & GRE_CHECKSUM) >> 13)) {
		key = cursor_take(&ahead, sizeof(*key));
		if (key)
			pkt->key.vni = bpf_ntohl(key->key);
	}
	if (!is_erspan(bpf_ntohs(gre->type)))
		return;
	pkt->key.tunnel = TUNNEL_ERSPAN;
	if (gre->type == bpf_htons(ETHERTYPE_ERSPAN) && !(flags & GRE_SEQUENCE))
		return;
	if (cursor_take(c, gre_options_len(flags))) {
		erspan = cursor_take(c, sizeof(*erspan));
		if (erspan)
			pkt->key.vni = bpf_ntohs(erspan->session) &
				       ERSPAN_SESSION;
	}
}

/*
 * What a tunnel says besides the packet in it: GRE's key, ERSPAN's session, and lists of segments.
 *
 * RFC 8754: behind a list of segments, the outer destination is the next one of them, and the tunnel's
 * end the last one. IP and Ethernet there (RFC 8986) are a tunnel of segments. One call for all types
 * of tunnels: a branch would be verified with all that follows.
 */
static __noinline void name_tunnel(const __u8 *start, const __u8 *end,
				   struct packet *pkt, struct packet *outer)
{
	struct cursor ahead = { .pos = start + (outer->routing & CURSOR_MASK),
				.end = end };
	const struct segments_wire *segments =
		cursor_take(&ahead, sizeof(*segments));
	const bool is_listed = outer->routing && segments &&
			       segments->routing_type == ROUTING_SEGMENTS &&
			       segments->len * 8 >= sizeof(segments->last);

	if (outer->key.proto == IP_PROTO_GRE) {
		ahead.pos = start + (outer->header_end & CURSOR_MASK);
		name_gre(&ahead, pkt);
	}
	if (outer->key.proto == IP_PROTO_ETHERNET ||
	    (is_listed && pkt->key.tunnel == TUNNEL_IPIP))
		pkt->key.tunnel = TUNNEL_SRV6;
	if (is_listed)
		__builtin_memcpy(&outer->key.dst, segments->last,
				 sizeof(outer->key.dst));
}

#endif
