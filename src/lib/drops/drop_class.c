// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_names.h"

#include "base/util.h"

#include <stdbool.h>
#include <string.h>

/* ---- Kinds -------------------------------------------------------------------------- */

/*
 * include/net/dropreason-core.h explains each. Data of TCP that had arrived before, or that a merged
 * segment has; segments whose effect was taken; packets for others, in promiscuous mode; fragments that came
 * twice; what a socket had not read when it was closed; copies for packet sockets.
 */
static const char *const benign_causes[] = {
	"CONSUMED",	"TCP_OLD_DATA",	     "TCP_OFOMERGE", "TCP_OLD_ACK",
	"TCP_RESET",	"OTHERHOST",	     "DUP_FRAG",     "SOCKET_CLOSE",
	"SKB_CONSUMED", "PACKET_SOCK_ERROR",
};

/* Parts of a buffer are freed after it, with its reason. */
static const char *const benign_functions[] = {
	"skb_release_data",
	"__kfree_skb",
};

/* They state no reason, and lose nothing: sockets that end, copies, tests of BPF programs. */
static const char *const benign_unspecified[] = {
	"udp_destruct_common",
	"ip6_mc_input",
	"bpf_prog_test_run_skb",
};

/* The queue that QUEUE_PURGE empties is a socket's. Others, as of neighbours, lose packets. */
static const char *const socket_prefixes[] = {
	"sk_stream_kill_queues",
	"inet_sock_destruct",
	"inet6_sock_destruct",
	"inet_csk_",
	"tcp_",
	"mptcp_",
	"udp_",
	"raw_",
	"rawv6_",
	"packet_",
	"netlink_",
	"unix_",
	"skb_queue_purge",
};

static bool is_among(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

static const char *without_prefix(const char *cause)
{
	const size_t len = sizeof(DROP_CAUSE_PREFIX) - 1;

	return strncmp(cause, DROP_CAUSE_PREFIX, len) ? cause : cause + len;
}

static bool is_of_socket(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(socket_prefixes); i++)
		if (!strncmp(function, socket_prefixes[i],
			     strlen(socket_prefixes[i])))
			return true;
	return false;
}

enum netobs_drop_kind drop_kind(const char *cause, const char *function)
{
	const char *name = without_prefix(cause);
	const bool is_specified = *name && strcmp(name, "NOT_SPECIFIED") != 0;

	if (!strcmp(name, "QUEUE_PURGE") && is_of_socket(function))
		return NETOBS_DROP_BENIGN;
	if (!is_specified && is_among(function, benign_unspecified,
				      ARRAY_SIZE(benign_unspecified)))
		return NETOBS_DROP_BENIGN;
	if (is_among(name, benign_causes, ARRAY_SIZE(benign_causes)) ||
	    is_among(function, benign_functions, ARRAY_SIZE(benign_functions)))
		return NETOBS_DROP_BENIGN;
	return is_specified ? NETOBS_DROP_LOSS : NETOBS_DROP_UNSPECIFIED;
}

/* ---- Layers ------------------------------------------------------------------------- */

struct prefix {
	const char *text;
	enum netobs_drop_layer layer;
};

#define LAYER(text, layer)                      \
	{                                       \
		text, NETOBS_DROP_LAYER_##layer \
	}

/* The first one that fits. */
static const struct prefix by_cause[] = {
	LAYER("NETFILTER", NETFILTER),
	LAYER("XFRM", XFRM),
	LAYER("CAN_RX", CAN),
	LAYER("CANFD_RX", CAN),
	LAYER("CANXL_RX", CAN),
	LAYER("NO_SOCKET", SOCKET),
	LAYER("SOCKET", SOCKET),
	LAYER("PROTO_MEM", SOCKET),
	LAYER("PACKET_SOCK", SOCKET),
	LAYER("TCP", TCP),
	LAYER("UDP", UDP),
	LAYER("ICMP", ICMP),
	LAYER("NEIGH", NEIGHBOUR),
	LAYER("ARP", NEIGHBOUR),
	LAYER("IPV6_NDISC", NEIGHBOUR),
	LAYER("IP_TUNNEL", TUNNEL),
	LAYER("TUNNEL", TUNNEL),
	LAYER("VXLAN", TUNNEL),
	LAYER("IP", IP),
	LAYER("OTHERHOST", IP),
	LAYER("UNICAST_IN_L2", IP),
	LAYER("PKT_TOO_BIG", IP),
	LAYER("FRAG", IP),
	LAYER("DUP_FRAG", IP),
	LAYER("BRIDGE", BRIDGE),
	LAYER("NO_TX_TARGET", BRIDGE),
	LAYER("QDISC", TC),
	LAYER("TC_", TC),
	LAYER("FQ_", TC),
	LAYER("CAKE", TC),
	LAYER("XDP", XDP),
	LAYER("CPU_BACKLOG", DEVICE),
	LAYER("FULL_RING", DEVICE),
	LAYER("DEV_", DEVICE),
	LAYER("VLAN", DEVICE),
	LAYER("UNHANDLED_PROTO", DEVICE),
	LAYER("MAC_", DEVICE),
	LAYER("LOCAL_MAC", DEVICE),
	LAYER("TAP_", DEVICE),
};

static const struct prefix by_function[] = {
	LAYER("nf_", NETFILTER),
	LAYER("nft_", NETFILTER),
	LAYER("ipt_", NETFILTER),
	LAYER("xfrm", XFRM),
	LAYER("__xfrm", XFRM),
	LAYER("esp", XFRM),
	LAYER("ah_", XFRM),
	LAYER("ah4_", XFRM),
	LAYER("ah6_", XFRM),
	LAYER("ipcomp", XFRM),
	LAYER("can_", CAN),
	LAYER("canfd_", CAN),
	LAYER("canxl_", CAN),
	LAYER("vcan_", CAN),
	LAYER("vxcan_", CAN),
	LAYER("bcm_", CAN),
	LAYER("isotp_", CAN),
	LAYER("j1939_", CAN),
	LAYER("tcp_v", TCP),
	LAYER("tcp_", TCP),
	LAYER("__tcp", TCP),
	LAYER("udp", UDP),
	LAYER("__udp", UDP),
	LAYER("icmp", ICMP),
	LAYER("ping_", ICMP),
	LAYER("neigh_", NEIGHBOUR),
	LAYER("__neigh_", NEIGHBOUR),
	LAYER("arp_", NEIGHBOUR),
	LAYER("ndisc_", NEIGHBOUR),
	LAYER("br_", BRIDGE),
	LAYER("__br_", BRIDGE),
	LAYER("vxlan_", TUNNEL),
	LAYER("geneve_", TUNNEL),
	LAYER("ip_tunnel", TUNNEL),
	LAYER("ip6_tnl", TUNNEL),
	LAYER("ipgre", TUNNEL),
	LAYER("ip", IP),
	LAYER("__ip", IP),
	LAYER("inet", SOCKET),
	LAYER("sk_", SOCKET),
	LAYER("sock_", SOCKET),
	LAYER("__sk", SOCKET),
	LAYER("raw_", SOCKET),
	LAYER("rawv6_", SOCKET),
	LAYER("packet_", SOCKET),
	LAYER("tpacket_", SOCKET),
	LAYER("skb_queue_purge", SOCKET),
	LAYER("tcf_", TC),
	LAYER("sch_", TC),
	LAYER("qdisc_", TC),
	LAYER("tbf_", TC),
	LAYER("htb_", TC),
	LAYER("fq_", TC),
	LAYER("__dev_xmit_skb", TC),
	LAYER("do_xdp", XDP),
	LAYER("xdp_", XDP),
	LAYER("netif_receive_generic_xdp", XDP),
	LAYER("netif_", DEVICE),
	LAYER("__netif_", DEVICE),
	LAYER("enqueue_to_backlog", DEVICE),
	LAYER("dev_", DEVICE),
	LAYER("__dev_", DEVICE),
	LAYER("validate_xmit", DEVICE),
	LAYER("veth_xdp", XDP),
	LAYER("veth_", DEVICE),
	LAYER("tun_", DEVICE),
	LAYER("macvlan_", DEVICE),
};

#undef LAYER

static enum netobs_drop_layer layer_by(const char *name,
				       const struct prefix *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, list[i].text, strlen(list[i].text)))
			return list[i].layer;
	return NETOBS_DROP_LAYER_OTHER;
}

/* Frames of CAN, CAN FD and CAN XL: include/uapi/linux/if_ether.h. */
static bool is_can(uint16_t ethertype)
{
	enum { FIRST = 0x000c, LAST = 0x000e };

	return ethertype >= FIRST && ethertype <= LAST;
}

/* Sockets of CAN and of IP have functions of the same names, such as raw_rcv(). */
enum netobs_drop_layer drop_layer(const char *cause, const char *function,
				  uint16_t ethertype)
{
	const char *name = without_prefix(cause);
	enum netobs_drop_layer layer =
		layer_by(name, by_cause, ARRAY_SIZE(by_cause));

	if (layer == NETOBS_DROP_LAYER_OTHER)
		layer = layer_by(function, by_function, ARRAY_SIZE(by_function));
	if (is_can(ethertype) && (layer == NETOBS_DROP_LAYER_OTHER ||
				  layer == NETOBS_DROP_LAYER_SOCKET))
		return NETOBS_DROP_LAYER_CAN;
	return layer;
}

/* ---- Names -------------------------------------------------------------------------- */

const char *netobs_drop_kind_name(unsigned int kind)
{
	static const char *const names[NETOBS_DROP_KINDS] = {
		[NETOBS_DROP_LOSS] = "loss",
		[NETOBS_DROP_UNSPECIFIED] = "unspecified",
		[NETOBS_DROP_BENIGN] = "benign",
	};

	return kind < NETOBS_DROP_KINDS ? names[kind] : NULL;
}

const char *netobs_drop_layer_name(unsigned int layer)
{
	static const char *const names[NETOBS_DROP_LAYERS] = {
		[NETOBS_DROP_LAYER_OTHER] = "other",
		[NETOBS_DROP_LAYER_SOCKET] = "socket",
		[NETOBS_DROP_LAYER_TCP] = "tcp",
		[NETOBS_DROP_LAYER_UDP] = "udp",
		[NETOBS_DROP_LAYER_ICMP] = "icmp",
		[NETOBS_DROP_LAYER_IP] = "ip",
		[NETOBS_DROP_LAYER_NETFILTER] = "netfilter",
		[NETOBS_DROP_LAYER_NEIGHBOUR] = "neighbour",
		[NETOBS_DROP_LAYER_BRIDGE] = "bridge",
		[NETOBS_DROP_LAYER_TUNNEL] = "tunnel",
		[NETOBS_DROP_LAYER_TC] = "tc",
		[NETOBS_DROP_LAYER_XDP] = "xdp",
		[NETOBS_DROP_LAYER_DEVICE] = "device",
		[NETOBS_DROP_LAYER_XFRM] = "xfrm",
		[NETOBS_DROP_LAYER_CAN] = "can",
	};

	return layer < NETOBS_DROP_LAYERS ? names[layer] : NULL;
}
