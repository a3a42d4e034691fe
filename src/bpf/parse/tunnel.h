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
};

/* UDP destination ports; 0 is none. */
struct tunnel_ports {
	union {
		struct {
			__u16 vxlan[2];
			__u16 geneve[2];
		};
		__u64 all;
	};
};

static __always_inline bool has_port(const __u16 ports[2], __u16 port)
{
	return port && (port == ports[0] || port == ports[1]);
}

/* Whether any of them is @port: a lane of 16 bits that has become zero. */
static __always_inline bool is_tunnel_port(const struct tunnel_ports *ports,
					   __u16 port)
{
	const __u64 ones = 0x0001000100010001ULL;
	__u64 lanes = ports->all ^ port * ones;

	return port && (lanes - ones) & ~lanes & ones << 15;
}

static __always_inline enum tunnel_type
match_tunnel(const struct packet *pkt, const struct tunnel_ports *ports)
{
	if (pkt->fragment != FRAGMENT_NONE)
		return TUNNEL_NONE;
	switch (pkt->key.proto) {
	case IP_PROTO_UDP:
		if (has_port(ports->vxlan, pkt->key.dst_port))
			return TUNNEL_VXLAN;
		if (has_port(ports->geneve, pkt->key.dst_port))
			return TUNNEL_GENEVE;
		return TUNNEL_NONE;
	case IP_PROTO_GRE:
		return TUNNEL_GRE;
	case IP_PROTO_IPIP:
	case IP_PROTO_IPV6:
		return TUNNEL_IPIP;
	default:
		return TUNNEL_NONE;
	}
}

/* What an encapsulation's protocol field names. Inner MACs are not kept. */
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

static __always_inline int parse_gre(struct cursor *c, struct packet *pkt)
{
	const struct gre_wire *gre = cursor_take(c, sizeof(*gre));
	__u16 flags;

	if (!gre)
		return reject(UNPARSED_SHORT);
	flags = bpf_ntohs(gre->flags);
	if (flags & (GRE_VERSION | GRE_ROUTING))
		return reject(UNPARSED_BAD_HEADER);
	if (flags & GRE_CHECKSUM && !cursor_take(c, 4))
		return reject(UNPARSED_SHORT);
	if (flags & GRE_KEY) {
		const struct gre_key_wire *gre_key =
			cursor_take(c, sizeof(*gre_key));

		if (!gre_key)
			return reject(UNPARSED_SHORT);
		pkt->key.vni = bpf_ntohl(gre_key->key);
	}
	if (flags & GRE_SEQUENCE && !cursor_take(c, 4))
		return reject(UNPARSED_SHORT);
	return bpf_ntohs(gre->type);
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
		return parse_gre(c, pkt);
	default:
		return peek_ip(c);
	}
}

/* Returns the ethertype of the inner network header, or a rejection. */
static __always_inline int parse_tunnel(struct cursor *c, struct packet *pkt,
					enum tunnel_type tunnel)
{
	int type = parse_tunnel_header(c, pkt, tunnel);

	if (type < 0 || tunnel == TUNNEL_IPIP)
		return type;
	if (!cursor_settle(c))
		return reject(UNPARSED_TOO_DEEP);
	return parse_inner_type(c, pkt, type);
}

#endif
