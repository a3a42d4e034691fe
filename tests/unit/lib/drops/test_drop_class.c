// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "drops/drop_class.h"

static const struct {
	const char *cause, *function;
	enum netobs_drop_kind kind;
	enum netobs_drop_layer layer;
	uint16_t ethertype;
} rows[] = {
	{ "SKB_DROP_REASON_NO_SOCKET", "tcp_v4_rcv", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_SOCKET, 0 },
	{ "SKB_DROP_REASON_NETFILTER_DROP", "nft_do_chain", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_NETFILTER, 0 },
	{ "SKB_DROP_REASON_TCP_OLD_DATA", "tcp_data_queue", NETOBS_DROP_BENIGN,
	  NETOBS_DROP_LAYER_TCP, 0 },
	{ "SKB_CONSUMED", "consume", NETOBS_DROP_BENIGN,
	  NETOBS_DROP_LAYER_OTHER, 0 },
	{ "SKB_DROP_REASON_QDISC_DROP", "__dev_queue_xmit", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_TC, 0 },
	{ "SKB_DROP_REASON_QDISC_DROP", "skb_release_data", NETOBS_DROP_BENIGN,
	  NETOBS_DROP_LAYER_TC, 0 },
	{ "SKB_DROP_REASON_IP_TUNNEL_ECN", "", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_TUNNEL, 0 },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "veth_xdp_rcv_skb",
	  NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_XDP, 0 },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "nothing_that_is_known",
	  NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_OTHER, 0 },
	{ "SKB_DROP_REASON_QUEUE_PURGE", "inet_sock_destruct",
	  NETOBS_DROP_BENIGN, NETOBS_DROP_LAYER_SOCKET, 0 },
	{ "SKB_DROP_REASON_QUEUE_PURGE", "neigh_destroy", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_NEIGHBOUR, 0 },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "udp_destruct_common",
	  NETOBS_DROP_BENIGN, NETOBS_DROP_LAYER_UDP, 0 },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "ip6_mc_input", NETOBS_DROP_BENIGN,
	  NETOBS_DROP_LAYER_IP, 0 },
	{ "SKB_DROP_REASON_IP_INHDR", "ip6_mc_input", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_IP, 0 },
	{ "SKB_DROP_REASON_XFRM_POLICY", "ip_forward", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_XFRM, 0x0800 },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "xfrm_input",
	  NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_XFRM, 0x0800 },
	{ "", "esp6_input_done2", NETOBS_DROP_UNSPECIFIED,
	  NETOBS_DROP_LAYER_XFRM, 0 },
	{ "", "ipcomp_input", NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_XFRM, 0 },
	{ "SKB_DROP_REASON_CANFD_RX_INVALID_FRAME", "canfd_rcv",
	  NETOBS_DROP_LOSS, NETOBS_DROP_LAYER_CAN, 0x000d },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "can_send", NETOBS_DROP_UNSPECIFIED,
	  NETOBS_DROP_LAYER_CAN, 0x000c },
	{ "SKB_DROP_REASON_SOCKET_RCVBUFF", "raw_rcv", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_CAN, 0x000c },
	{ "SKB_DROP_REASON_SOCKET_RCVBUFF", "raw_rcv", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_SOCKET, 0x0800 },
	{ "SKB_DROP_REASON_QDISC_DROP", "__dev_queue_xmit", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_TC, 0x000e },
	{ "OPENVSWITCH_3", "", NETOBS_DROP_LOSS, NETOBS_DROP_LAYER_OTHER, 0 },
	{ "", "udp_queue_rcv_one_skb", NETOBS_DROP_UNSPECIFIED,
	  NETOBS_DROP_LAYER_UDP, 0 },
	{ "", "", NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_OTHER, 0 },
};

TEST(names_show_what_a_drop_means)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(drop_kind(rows[i].cause, rows[i].function),
				 rows[i].kind);
		assert_int_equal(drop_layer(rows[i].cause, rows[i].function,
					    rows[i].ethertype),
				 rows[i].layer);
	}
}

static const struct {
	const char *cause, *function;
	enum drop_class class;
} classes[] = {
	{ "SKB_DROP_REASON_TCP_OLD_DATA", "tcp_data_queue", DROP_CLASS_KNOWN },
	{ "SKB_DROP_REASON_TCP_RFC7323_PAWS_ACK", "", DROP_CLASS_KNOWN },
	{ "SKB_DROP_REASON_TCP_OFO_QUEUE_PRUNE", "", DROP_CLASS_OTHER },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "tcp_v6_rcv", DROP_CLASS_CLOSED },
	{ "", "tcp_v6_rcv", DROP_CLASS_OTHER },
	{ "SKB_DROP_REASON_NO_SOCKET", "tcp_v4_rcv", DROP_CLASS_NO_SOCKET },
	{ "SKB_DROP_REASON_SOCKET_RCVBUFF", "udp_queue_rcv_one_skb",
	  DROP_CLASS_BUFFER },
	{ "SKB_DROP_REASON_TCP_LISTEN_OVERFLOW", "tcp_v4_rcv", DROP_CLASS_ACCEPT },
	{ "SKB_DROP_REASON_QDISC_DROP", "__dev_queue_xmit", DROP_CLASS_QDISC },
	{ "SKB_DROP_REASON_QDISC_OVERLIMIT", "", DROP_CLASS_QDISC },
	{ "SKB_DROP_REASON_FQ_FLOW_LIMIT", "", DROP_CLASS_QDISC },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "__dev_forward_skb2", DROP_CLASS_LINK },
	{ "SKB_DROP_REASON_NETFILTER_DROP", "nft_do_chain", DROP_CLASS_RULE },
	{ "", "ipt_do_table", DROP_CLASS_RULE },
	{ "SKB_DROP_REASON_NETFILTER_DROP", "nf_hook_slow", DROP_CLASS_HOOK },
	{ "", "nf_hook_slow", DROP_CLASS_HOOK },
	{ "SKB_DROP_REASON_IP_NOROUTES", "ip_forward", DROP_CLASS_OTHER },
	{ "", "", DROP_CLASS_OTHER },
};

TEST(names_show_what_the_drop_of_a_connection_comes_from)
{
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		assert_int_equal(drop_class(classes[i].cause, classes[i].function),
				 classes[i].class);
}
