// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_class.h"

#include "base/util.h"

#include <stdbool.h>
#include <string.h>

/* ---- Words ---------------------------------------------------------------------------- */

/* @return whether one of @words, between blanks, is @name, or the beginning of it */
static bool is_among(const char *name, const char *words, bool may_go_on)
{
	for (size_t len; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		if (!strncmp(name, words, len) && (may_go_on || !name[len]))
			return true;
	}
	return false;
}

/* ---- Kinds -------------------------------------------------------------------------- */

/*
 * include/net/dropreason-core.h explains each. Data of TCP that had arrived before, or that a merged
 * segment has; segments whose effect was taken; packets for others, in promiscuous mode; fragments that came
 * twice; what a socket had not read when it was closed; copies for packet sockets.
 */
static const char benign_causes[] =
	"CONSUMED TCP_OLD_DATA TCP_OFOMERGE TCP_OLD_ACK TCP_RESET OTHERHOST DUP_FRAG SOCKET_CLOSE "
	"SKB_CONSUMED PACKET_SOCK_ERROR";

/* Parts of a buffer are freed after it, with its reason. */
static const char benign_functions[] = "skb_release_data __kfree_skb";

/* They state no reason, and lose nothing: sockets that end, copies, tests of BPF programs. */
static const char benign_unspecified[] =
	"udp_destruct_common ip6_mc_input bpf_prog_test_run_skb";

/* The queue that QUEUE_PURGE empties is a socket's. Others, as of neighbours, lose packets. */
static const char socket_prefixes[] =
	"sk_stream_kill_queues inet_sock_destruct inet6_sock_destruct inet_csk_ tcp_ mptcp_ udp_ raw_ "
	"rawv6_ packet_ netlink_ unix_ skb_queue_purge";

static const char *without_prefix(const char *cause)
{
	static const char prefix[] = "SKB_DROP_REASON_";
	const size_t len = sizeof(prefix) - 1;

	return strncmp(cause, prefix, len) ? cause : cause + len;
}

enum netobs_drop_kind drop_kind(const char *cause, const char *function)
{
	const char *name = without_prefix(cause);
	const bool is_specified = *name && strcmp(name, "NOT_SPECIFIED") != 0;

	if (!strcmp(name, "QUEUE_PURGE") &&
	    is_among(function, socket_prefixes, true))
		return NETOBS_DROP_BENIGN;
	if (!is_specified && is_among(function, benign_unspecified, false))
		return NETOBS_DROP_BENIGN;
	if (is_among(name, benign_causes, false) ||
	    is_among(function, benign_functions, false))
		return NETOBS_DROP_BENIGN;
	return is_specified ? NETOBS_DROP_LOSS : NETOBS_DROP_UNSPECIFIED;
}

/* ---- Layers ------------------------------------------------------------------------- */

struct layer_prefixes {
	enum netobs_drop_layer layer;
	const char *words;
};

/* The first one that fits. */
static const struct layer_prefixes by_cause[] = {
	{ NETOBS_DROP_LAYER_NETFILTER, "NETFILTER" },
	{ NETOBS_DROP_LAYER_XFRM, "XFRM" },
	{ NETOBS_DROP_LAYER_CAN, "CAN_RX CANFD_RX CANXL_RX" },
	{ NETOBS_DROP_LAYER_SOCKET, "NO_SOCKET SOCKET PROTO_MEM PACKET_SOCK" },
	{ NETOBS_DROP_LAYER_TCP, "TCP" },
	{ NETOBS_DROP_LAYER_UDP, "UDP" },
	{ NETOBS_DROP_LAYER_ICMP, "ICMP" },
	{ NETOBS_DROP_LAYER_NEIGHBOUR, "NEIGH ARP IPV6_NDISC" },
	{ NETOBS_DROP_LAYER_TUNNEL, "IP_TUNNEL TUNNEL VXLAN" },
	{ NETOBS_DROP_LAYER_IP,
	  "IP OTHERHOST UNICAST_IN_L2 PKT_TOO_BIG FRAG DUP_FRAG" },
	{ NETOBS_DROP_LAYER_BRIDGE, "BRIDGE NO_TX_TARGET" },
	{ NETOBS_DROP_LAYER_TC, "QDISC TC_ FQ_ CAKE" },
	{ NETOBS_DROP_LAYER_XDP, "XDP" },
	{ NETOBS_DROP_LAYER_DEVICE,
	  "CPU_BACKLOG FULL_RING DEV_ VLAN UNHANDLED_PROTO MAC_ LOCAL_MAC TAP_" },
};

static const struct layer_prefixes by_function[] = {
	{ NETOBS_DROP_LAYER_NETFILTER, "nf_ nft_ ipt_" },
	{ NETOBS_DROP_LAYER_XFRM, "xfrm __xfrm esp ah_ ah4_ ah6_ ipcomp" },
	{ NETOBS_DROP_LAYER_CAN,
	  "can_ canfd_ canxl_ vcan_ vxcan_ bcm_ isotp_ j1939_" },
	{ NETOBS_DROP_LAYER_TCP, "tcp_ __tcp" },
	{ NETOBS_DROP_LAYER_UDP, "udp __udp" },
	{ NETOBS_DROP_LAYER_ICMP, "icmp ping_" },
	{ NETOBS_DROP_LAYER_NEIGHBOUR, "neigh_ __neigh_ arp_ ndisc_" },
	{ NETOBS_DROP_LAYER_BRIDGE, "br_ __br_" },
	{ NETOBS_DROP_LAYER_TUNNEL, "vxlan_ geneve_ ip_tunnel ip6_tnl ipgre" },
	{ NETOBS_DROP_LAYER_IP, "ip __ip" },
	{ NETOBS_DROP_LAYER_SOCKET,
	  "inet sk_ sock_ __sk raw_ rawv6_ packet_ tpacket_ skb_queue_purge" },
	{ NETOBS_DROP_LAYER_TC, "tcf_ sch_ qdisc_ tbf_ htb_ fq_ __dev_xmit_skb" },
	{ NETOBS_DROP_LAYER_XDP,
	  "do_xdp xdp_ netif_receive_generic_xdp veth_xdp" },
	{ NETOBS_DROP_LAYER_DEVICE,
	  "netif_ __netif_ enqueue_to_backlog dev_ __dev_ validate_xmit veth_ tun_ macvlan_" },
};

static enum netobs_drop_layer
layer_by(const char *name, const struct layer_prefixes *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_among(name, list[i].words, true))
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

/* ---- Classes ------------------------------------------------------------------------ */

struct class_names {
	enum drop_class class;
	const char *causes, *functions; /* beginnings of names; NULL: any */
};

/*
 * The first one that fits. Rules of netfilter drop in the functions of their tables; conntrack, and rules of
 * older kernels too, in the hook itself. A veth drops by forwarding what its peer's end sends while it is down.
 */
static const struct class_names classes[] = {
	{ DROP_CLASS_KNOWN,
	  "TCP_OLD_DATA TCP_OLD_ACK TCP_OLD_SEQUENCE TCP_OFOMERGE TCP_OFO_DROP TCP_RFC7323_PAWS",
	  NULL },
	{ DROP_CLASS_CLOSED, "NOT_SPECIFIED", "tcp_v" },
	{ DROP_CLASS_NO_SOCKET, "NO_SOCKET", NULL },
	{ DROP_CLASS_BUFFER, "SOCKET_RCVBUFF", NULL },
	{ DROP_CLASS_ACCEPT, "TCP_LISTEN_OVERFLOW LISTEN_OVERFLOW", NULL },
	{ DROP_CLASS_QDISC, "QDISC FQ_ CAKE_", NULL },
	{ DROP_CLASS_LINK, NULL,
	  "dev_forward_skb __dev_forward_skb ____dev_forward_skb" },
	{ DROP_CLASS_RULE, NULL,
	  "nft_do_chain ipt_do_table ip6t_do_table arpt_do_table ebt_do_table" },
	{ DROP_CLASS_HOOK, "NETFILTER", NULL },
	{ DROP_CLASS_HOOK, NULL, "nf_hook" },
};

enum drop_class drop_class(const char *cause, const char *function)
{
	const char *name = without_prefix(cause);

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if ((!classes[i].causes ||
		     is_among(name, classes[i].causes, true)) &&
		    (!classes[i].functions ||
		     is_among(function, classes[i].functions, true)))
			return classes[i].class;
	return DROP_CLASS_OTHER;
}
