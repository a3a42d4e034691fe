// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "base/util.h"
#include "drops/drop_class.h"

#include <stdlib.h>

static const struct {
	const char *cause, *function;
	enum netobs_drop_kind kind;
	enum netobs_drop_layer layer;
} rows[] = {
	{ "SKB_DROP_REASON_NO_SOCKET", "tcp_v4_rcv", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_SOCKET },
	{ "SKB_DROP_REASON_NETFILTER_DROP", "nft_do_chain", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_NETFILTER },
	{ "SKB_DROP_REASON_TCP_OLD_DATA", "tcp_data_queue", NETOBS_DROP_BENIGN,
	  NETOBS_DROP_LAYER_TCP },
	{ "SKB_CONSUMED", "consume", NETOBS_DROP_BENIGN, NETOBS_DROP_LAYER_OTHER },
	{ "SKB_DROP_REASON_QDISC_DROP", "__dev_queue_xmit", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_TC },
	{ "SKB_DROP_REASON_QDISC_DROP", "skb_release_data", NETOBS_DROP_BENIGN,
	  NETOBS_DROP_LAYER_TC },
	{ "SKB_DROP_REASON_IP_TUNNEL_ECN", "", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_TUNNEL },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "veth_xdp_rcv_skb",
	  NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_XDP },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "nothing_that_is_known",
	  NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_OTHER },
	{ "SKB_DROP_REASON_QUEUE_PURGE", "inet_sock_destruct",
	  NETOBS_DROP_BENIGN, NETOBS_DROP_LAYER_SOCKET },
	{ "SKB_DROP_REASON_QUEUE_PURGE", "neigh_destroy", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_NEIGHBOUR },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "udp_destruct_common",
	  NETOBS_DROP_BENIGN, NETOBS_DROP_LAYER_UDP },
	{ "SKB_DROP_REASON_NOT_SPECIFIED", "ip6_mc_input", NETOBS_DROP_BENIGN,
	  NETOBS_DROP_LAYER_IP },
	{ "SKB_DROP_REASON_IP_INHDR", "ip6_mc_input", NETOBS_DROP_LOSS,
	  NETOBS_DROP_LAYER_IP },
	{ "OPENVSWITCH_3", "", NETOBS_DROP_LOSS, NETOBS_DROP_LAYER_OTHER },
	{ "", "udp_queue_rcv_one_skb", NETOBS_DROP_UNSPECIFIED,
	  NETOBS_DROP_LAYER_UDP },
	{ "", "", NETOBS_DROP_UNSPECIFIED, NETOBS_DROP_LAYER_OTHER },
};

static void names_show_what_a_drop_means(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(drop_kind(rows[i].cause, rows[i].function),
				 rows[i].kind);
		assert_int_equal(drop_layer(rows[i].cause, rows[i].function),
				 rows[i].layer);
	}
}

static void kinds_and_layers_have_names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < NETOBS_DROP_KINDS; i++)
		assert_non_null(netobs_drop_kind_name(i));
	for (unsigned int i = 0; i < NETOBS_DROP_LAYERS; i++)
		assert_non_null(netobs_drop_layer_name(i));
	assert_null(netobs_drop_kind_name(NETOBS_DROP_KINDS));
	assert_null(netobs_drop_layer_name(NETOBS_DROP_LAYERS));
	assert_string_equal(netobs_drop_layer_name(NETOBS_DROP_LAYER_TC), "tc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_show_what_a_drop_means),
		cmocka_unit_test(kinds_and_layers_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
