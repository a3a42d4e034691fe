// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Groups of flows: their keys, which end is the server's, sums, rows and JSON. */
#include "lib_flow.h"
#include "lib_seed.h"
#include "lib_test.h"

#include "group/keys.h"

#include <limits.h>
#include <netinet/in.h>
#include <netobs/group.h>

enum { SYN = 0x02, ACK = 0x10 };

static struct netobs_groups *make_groups(const char *keys, uint32_t most)
{
	char why[NETOBS_ERROR_MAX] = "";
	const struct netobs_groups_opts opts = { .sz = sizeof(opts),
						 .keys = keys,
						 .max_groups = most,
						 .error = &why };
	struct netobs_groups *groups = NULL;

	if (netobs_groups_new(&opts, &groups) < 0)
		fail_msg("%s: %s", keys, why);
	return groups;
}

/* A case of struct netobs_groups *groups, which is make_groups() of @keys and @most. */
#define GROUPS_TEST(name, keys, most)                                   \
	static void name##_of(struct netobs_groups *groups);            \
	TEST(name)                                                      \
	{                                                               \
		struct netobs_groups *groups = make_groups(keys, most); \
                                                                        \
		name##_of(groups);                                      \
		netobs_groups_free(groups);                             \
	}                                                               \
	static void name##_of(struct netobs_groups *groups)

static struct netobs_groups_top take_top(struct netobs_groups *groups,
					 enum netobs_group_sort sort,
					 uint64_t most)
{
	struct netobs_groups_top top = { .sz = sizeof(top),
					 .sort = sort,
					 .most = most };

	assert_true(netobs_groups_top(groups, &top) >= 0);
	return top;
}

/* The text of key @key of row @i. */
static const char *row_text(const struct netobs_groups *groups, size_t i,
			    uint32_t key)
{
	static char text[NETOBS_GROUP_TEXT_MAX];
	const int len = netobs_group_text(groups, netobs_groups_row(groups, i),
					  key, NULL, text, sizeof(text));

	assert_int_equal(len, strlen(text));
	return text;
}

/* The text of the first key of @flow's group. */
static const char *key_text(const char *keys, const struct netobs_flow *flow)
{
	struct netobs_groups *groups = make_groups(keys, 0);
	const char *text;

	assert_int_equal(netobs_groups_add(groups, flow), 0);
	take_top(groups, NETOBS_GROUP_BY_BYTES, 0);
	text = row_text(groups, 0, 0);
	netobs_groups_free(groups);
	return text;
}

/* ---- Keys ---------------------------------------------------------------------------- */

TEST(keys_that_are_wrong_are_explained)
{
	static const char *const cases[][2] = {
		{ "servce", "did you mean 'service'?" },
		{ "colour", "there are flow, src, dst" },
		{ "", "there is no key ''" },
		{ "src,", "there is no key ''" },
		{ "src,src", "'src' is there twice" },
		{ "src,flow", "'flow' stands alone" },
		{ "service,port", "one is part of the other" },
		{ "proto,port", "one is part of the other" },
		{ "service,host", "'client,service' and 'src,dst' have both" },
		{ "host,src", "one is part of the other; 'client,service'" },
		{ "dst,host", "one is part of the other" },
		{ "host,client", "one is part of the other" },
		{ "pair,host", "one is part of the other" },
		{ "host,tuple", "one is part of the other" },
		{ "src,dst,port,vlan,tunnel", "too many keys" },
	};
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(netobs_group_keys_parse(cases[i][0], NULL, why,
							 sizeof(why)),
				 -EINVAL);
		assert_non_null(strstr(why, cases[i][1]));
	}
}

TEST(keys_say_what_they_need)
{
	struct netobs_group_keys keys = { .sz = sizeof(keys) };
	char why[64];

	assert_int_equal(netobs_group_keys_parse("flow", &keys, NULL, 0), 0);
	assert_int_equal(keys.n, 0);
	assert_int_equal(netobs_group_keys_parse("client,service", &keys, why,
						 sizeof(why)),
			 0);
	assert_string_equal(why, "");
	assert_int_equal(keys.n, 2);
	assert_int_equal(keys.flags, 0);
	assert_string_equal(keys.names[1], "service");
	assert_string_equal(keys.headings[0], "CLIENT");
	netobs_group_keys_parse("host", &keys, NULL, 0);
	assert_int_equal(keys.flags, NETOBS_GROUP_BOTH_ENDS);
	netobs_group_keys_parse("pod", &keys, NULL, 0);
	assert_int_equal(keys.flags,
			 NETOBS_GROUP_BOTH_ENDS | NETOBS_GROUP_PROCESS);
	keys.sz = 1;
	assert_int_equal(netobs_group_keys_parse("src", &keys, NULL, 0), -EINVAL);
	assert_int_equal(netobs_group_keys_parse(NULL, NULL, NULL, 0), -EINVAL);
}

TEST(values_are_named_as_in_flows)
{
	struct netobs_point point = { .ifindex = 2,
				      .direction = NETOBS_INGRESS,
				      .name = "et\nh0" };
	struct netobs_flow flow = make_tcp_flow(1, 40000, 2, 443);

	assert_string_equal(key_text("src", &flow), "10.0.0.1");
	assert_string_equal(key_text("dst", &flow), "10.0.0.2");
	assert_string_equal(key_text("client", &flow), "10.0.0.1");
	assert_string_equal(key_text("service", &flow), "10.0.0.2:443/TCP");
	assert_string_equal(key_text("tuple", &flow),
			    "10.0.0.1:40000 \u2192 10.0.0.2:443/TCP");
	assert_string_equal(key_text("pair", &flow), "10.0.0.1 \u2194 10.0.0.2");
	assert_string_equal(key_text("port", &flow), "443/TCP");
	assert_string_equal(key_text("proto", &flow), "TCP");
	assert_string_equal(key_text("interface", &flow), "-");
	assert_string_equal(key_text("direction", &flow), "-");
	assert_string_equal(key_text("vlan", &flow), "-");
	assert_string_equal(key_text("tunnel", &flow), "-");

	flow.points = &point;
	flow.n_points = 1;
	flow.point_size = sizeof(point);
	flow.has |= NETOBS_HAS_VLAN | NETOBS_HAS_TUNNEL | NETOBS_HAS_VNI;
	flow.vlan_id = 7;
	flow.tunnel = NETOBS_TUNNEL_VXLAN;
	flow.vni = 42;
	assert_string_equal(key_text("interface", &flow), "et?h0");
	assert_string_equal(key_text("direction", &flow), "in");
	assert_string_equal(key_text("vlan", &flow), "7");
	assert_string_equal(key_text("tunnel", &flow), "vxlan 42");
	flow.has |= NETOBS_HAS_OUTER_VLAN;
	flow.outer_vlan_id = 100;
	assert_string_equal(key_text("vlan", &flow), "100.7");

	flow.has = 0;
	flow.proto = 1;
	assert_string_equal(key_text("service", &flow), "10.0.0.2 ICMP");
	assert_string_equal(key_text("port", &flow), "ICMP");
	memset(flow.dst, 0, sizeof(flow.dst));
	flow.has = NETOBS_HAS_PORTS;
	flow.proto = 17;
	assert_string_equal(key_text("service", &flow), "[::]:443/UDP");
}

/* ---- Servers ------------------------------------------------------------------------- */

TEST(the_server_is_found_in_both_directions)
{
	static const struct {
		uint16_t sport, dport, flags;
		uint8_t combined, proto;
		enum flow_end server;
	} cases[] = {
		{ 40000, 443, ACK, 0, 6, FLOW_DESTINATION },
		{ 443, 40000, ACK, 0, 6, FLOW_SOURCE },
		{ 443, 40000, SYN, 0, 6, FLOW_DESTINATION },
		{ 40000, 443, SYN | ACK, NETOBS_TCP_SYN_ACK, 6, FLOW_SOURCE },
		{ 123, 123, 0, 0, 17, FLOW_SOURCE }, /* the lower address */
	};
	static struct servers servers;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netobs_flow flow =
			make_tcp_flow(1, cases[i].sport, 2, cases[i].dport);

		flow.proto = cases[i].proto;
		flow.tcp_flags = cases[i].flags;
		flow.tcp_combined = cases[i].combined;
		flow.has = NETOBS_HAS_PORTS |
			   (flow.proto == 6 ? NETOBS_HAS_TCP : 0U);
		memset(&servers, 0, sizeof(servers));
		assert_int_equal(server_find(&servers, &flow), cases[i].server);
	}
}

TEST(a_server_that_accepted_a_connection_is_remembered)
{
	struct netobs_flow there = make_tcp_flow(1, 40000, 2, 50051);
	struct netobs_flow back = make_tcp_flow(2, 50051, 1, 40000);
	struct netobs_flow accepted = back;
	static struct servers servers;

	assert_int_equal(server_find(&servers, &there), FLOW_SOURCE);
	accepted.tcp_flags |= SYN;
	accepted.tcp_combined = NETOBS_TCP_SYN_ACK;
	assert_int_equal(server_find(&servers, &accepted), FLOW_SOURCE);
	assert_int_equal(server_find(&servers, &there), FLOW_DESTINATION);
	assert_int_equal(server_find(&servers, &back), FLOW_SOURCE);
}

TEST(without_ports_replies_come_from_the_server)
{
	static struct servers servers;
	struct netobs_flow flow = make_tcp_flow(1, 0, 2, 0);

	flow.has = NETOBS_HAS_ICMP;
	flow.proto = IPPROTO_ICMP;
	flow.icmp_type = 8;
	assert_int_equal(server_find(&servers, &flow), FLOW_DESTINATION);
	flow.icmp_type = 0;
	assert_int_equal(server_find(&servers, &flow), FLOW_SOURCE);
	flow.proto = IPPROTO_ICMPV6;
	flow.icmp_type = 129;
	assert_int_equal(server_find(&servers, &flow), FLOW_SOURCE);
	flow.has = NETOBS_HAS_PORTS;
	flow.proto = 17;
	flow.src_port = flow.dst_port = 5353;
	flow.dst[12] = 224;
	assert_int_equal(server_find(&servers, &flow), FLOW_DESTINATION);
}

TEST(groups_that_are_beside_others_learn_servers_with_them)
{
	struct netobs_groups *one = make_groups("host", 0), *other;
	const struct netobs_groups_opts opts = { .sz = sizeof(opts),
						 .keys = "client",
						 .beside = one };
	struct netobs_flow accepted = make_tcp_flow(2, 50051, 1, 40000);
	const struct netobs_flow there = make_tcp_flow(1, 40000, 2, 50051);

	assert_int_equal(netobs_groups_new(&opts, &other), 0);
	accepted.tcp_flags |= SYN;
	accepted.tcp_combined = NETOBS_TCP_SYN_ACK;
	assert_int_equal(netobs_groups_add(one, &accepted), 0);
	netobs_groups_free(one);
	assert_int_equal(netobs_groups_add(other, &there), 0);
	take_top(other, NETOBS_GROUP_BY_BYTES, 0);
	assert_string_equal(row_text(other, 0, 0), "10.0.0.1");
	netobs_groups_free(other);
}

/* ---- Sums ---------------------------------------------------------------------------- */

/* Whatever flows are grouped by, all of them are in the groups, once. */
TEST(groups_add_up_to_the_flows)
{
	static const char *const keys[] = {
		"src",	   "dst",     "client",	       "pair",
		"service", "port",    "proto",	       "interface",
		"vlan",	   "src,dst", "client,service"
	};

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		struct netobs_groups *groups = make_groups(keys[k], 0);
		struct netobs_group_sum sum = { 0 };
		struct netobs_groups_top top;

		for (int i = 0; i < 1000; i++) {
			struct netobs_flow flow =
				make_tcp_flow((uint8_t)(i % 7), (uint16_t)i,
					      (uint8_t)(i % 5), 443);

			flow.bytes = (uint64_t)i;
			assert_int_equal(netobs_groups_add(groups, &flow), 0);
		}
		top = take_top(groups, NETOBS_GROUP_BY_BYTES, 0);
		for (size_t i = 0; i < top.groups; i++)
			netobs_group_sum_add(&sum,
					     &netobs_groups_row(groups, i)->sum);
		assert_null(netobs_groups_row(groups, top.groups));
		assert_memory_equal(&sum, &top.total, sizeof(sum));
		assert_int_equal(top.others.flows + top.has_more, 0);
		assert_int_equal(sum.flows, 1000);
		assert_int_equal(sum.bytes, 999 * 1000 / 2);
		netobs_groups_free(groups);
	}
}

GROUPS_TEST(a_host_has_what_it_sent_and_what_it_received, "host", 0)
{
	const struct netobs_flow there = make_tcp_flow(1, 40000, 2, 443);
	struct netobs_flow back = make_tcp_flow(2, 443, 1, 40000);
	struct netobs_groups_top top;
	const struct netobs_group *row;

	back.bytes = 1000;
	netobs_groups_add(groups, &there);
	netobs_groups_add(groups, &back);
	top = take_top(groups, NETOBS_GROUP_BY_SENT, 0);
	assert_int_equal(top.groups, 2);
	assert_int_equal(top.total.bytes, 1100);
	assert_string_equal(row_text(groups, 0, 0), "10.0.0.2");
	row = netobs_groups_row(groups, 0);
	assert_int_equal(row->sum.bytes, 1100);
	assert_int_equal(row->sum.sent_bytes, 1000);
	row = netobs_groups_row(groups, 1);
	assert_int_equal(row->sum.bytes, 1100);
	assert_int_equal(row->sum.sent_bytes, 100);
}

enum { GROUPS = 1 << 14 };

GROUPS_TEST(a_million_groups_take_bounded_memory_and_lose_nothing, "src", GROUPS)
{
	enum { FLOWS = 1000000, SHOWN = 100 };
	struct netobs_flow flow = make_tcp_flow(1, 40000, 2, 443);
	struct netobs_groups_top top;

	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < FLOWS; i++) {
			memcpy(flow.src, &i, sizeof(i));
			assert_int_equal(netobs_groups_add(groups, &flow), 0);
		}
		/* A large one has a row, however late it comes. */
		flow.bytes = 1000;
		memset(flow.src, 0xff, sizeof(uint32_t));
		assert_int_equal(netobs_groups_add(groups, &flow), 0);
		flow.bytes = 100;
		top = take_top(groups, NETOBS_GROUP_BY_BYTES, SHOWN);
		assert_in_range(top.groups, GROUPS / 2, GROUPS);
		assert_int_equal(netobs_groups_row(groups, 0)->sum.bytes, 1000);
		assert_true(top.has_more);
		assert_int_equal(top.total.flows, FLOWS + 1);
		assert_int_equal(top.others.flows, FLOWS + 1 - SHOWN);
		assert_int_equal(top.others.packets, 3 * (FLOWS + 1 - SHOWN));
		assert_int_equal(top.others.bytes, 100 * (FLOWS + 1 - SHOWN));
		netobs_groups_clear(groups);
	}
}

/* A flow from 10.0.0.@from. */
static void send_bytes(struct netobs_groups *groups, uint8_t from, uint64_t bytes)
{
	struct netobs_flow flow = make_tcp_flow(from, 40000, 100, 443);

	flow.bytes = bytes;
	assert_int_equal(netobs_groups_add(groups, &flow), 0);
}

TEST(a_group_that_comes_back_says_what_it_may_lack)
{
	enum { STAYS = 1, RETURNS, MORE };
	struct netobs_groups *last = make_groups("src", 4);
	struct netobs_groups *total = make_groups("src", 0);
	const struct netobs_group *row;
	char json[NETOBS_GROUP_JSON_MAX];

	send_bytes(total, STAYS, 1000);
	send_bytes(total, 100, 100);
	send_bytes(last, STAYS, 1000);
	for (int from = RETURNS; from < MORE + 4; from++)
		send_bytes(last, (uint8_t)from, (uint64_t)from * 10);
	send_bytes(last, RETURNS, 5);
	assert_int_equal(take_top(last, NETOBS_GROUP_BY_BYTES, 0).groups, 3);
	assert_int_equal(netobs_groups_row(last, 0)->missing_bytes, 0);
	row = netobs_groups_row(last, 2);
	assert_int_equal(row->sum.bytes, 5);
	assert_int_equal(row->missing_bytes, 30 + 50);
	assert_true(netobs_group_json(last, row, 0, json, sizeof(json)) > 0);
	assert_non_null(strstr(json, "\"Bytes\":5,\"MissingBytesMax\":80}"));

	/* Those of the total that the interval has not may be in its others. */
	assert_int_equal(netobs_groups_merge(total, last), 0);
	take_top(total, NETOBS_GROUP_BY_BYTES, 0);
	assert_int_equal(netobs_groups_row(total, 0)->sum.bytes, 2000);
	assert_int_equal(netobs_groups_row(total, 0)->missing_bytes, 0);
	assert_int_equal(netobs_groups_row(total, 1)->sum.bytes, 100);
	assert_int_equal(netobs_groups_row(total, 1)->missing_bytes, 80);
	netobs_groups_free(total);
	netobs_groups_free(last);
}

enum { RETURNING = 60 };

/* What rows have, and may lack, against what their sources have sent. */
static void check_returning(struct netobs_groups *groups,
			    const uint64_t sent[RETURNING])
{
	const struct netobs_groups_top top =
		take_top(groups, NETOBS_GROUP_BY_BYTES, 0);
	uint64_t shown = top.others.bytes, bytes = 0;

	for (size_t i = 0; i < top.groups; i++) {
		const struct netobs_group *row = netobs_groups_row(groups, i);
		const char *last_byte = strrchr(row_text(groups, i, 0), '.') + 1;

		assert_in_range(sent[atoi(last_byte)], row->sum.bytes,
				row->sum.bytes + row->missing_bytes);
		assert_true(top.has_more || !row->missing_bytes);
		shown += row->sum.bytes;
	}
	for (uint32_t i = 0; i < RETURNING; i++)
		bytes += sent[i];
	assert_int_equal(shown, bytes);
	assert_int_equal(top.total.bytes, bytes);
}

/* Intervals, which are merged. Their sources are equal, few are large, or come one after the other. */
static void try_returning(void)
{
	struct netobs_groups *last =
		make_groups("src", 1 + test_below(RETURNING));
	struct netobs_groups *total =
		make_groups("src", 1 + test_below(RETURNING));
	uint64_t sent[RETURNING], sent_in_all[RETURNING] = { 0 };
	uint32_t next = 0;

	for (uint32_t turns = 1 + test_below(8); turns; turns--) {
		const uint32_t kind = test_below(3);

		netobs_groups_clear(last);
		memset(sent, 0, sizeof(sent));
		for (uint32_t n = test_below(300); n; n--) {
			const uint64_t bytes =
				1 + (test_random() >> 44 >> test_below(20));
			const uint32_t from =
				kind == 0 ? test_below(RETURNING) :
				kind == 1 ? test_below(1 + test_below(RETURNING)) :
					    next++ % RETURNING;

			send_bytes(last, (uint8_t)from, bytes);
			sent[from] += bytes;
			sent_in_all[from] += bytes;
		}
		check_returning(last, sent);
		assert_int_equal(netobs_groups_merge(total, last), 0);
		check_returning(total, sent_in_all);
	}
	netobs_groups_free(total);
	netobs_groups_free(last);
}

/* NETOBS_TEST_CASES: how many. */
TEST(groups_and_what_they_lack_are_what_was_sent)
{
	const char *cases = getenv("NETOBS_TEST_CASES");

	for (int i = cases ? atoi(cases) : 100; i > 0; i--)
		try_returning();
}

/* Round-trip times as if all samples of the group were one flow's, whatever order they come in. */
GROUPS_TEST(a_group_has_the_health_of_its_flows, "dst", 0)
{
	static const struct {
		uint8_t dst;
		uint32_t samples, retransmits, drops;
		uint64_t rtt_ns;
	} flows[] = {
		{ 2, 1, 0, 3, 40 },  { 2, 3, 5, 0, 20 },
		{ 2, 0, 1, 4, 999 }, /* no sample of this record */
		{ 3, 2, 0, 9, 30 },  { 4, 0, 0, 0, 0 },
	};
	const struct netobs_group *row;
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
		struct netobs_flow flow =
			make_tcp_flow(1, 40000, flows[i].dst, 443);

		flow.has |= NETOBS_HAS_TCP_HEALTH;
		flow.has |= flows[i].samples ? NETOBS_HAS_RTT : 0;
		flow.has |= flows[i].drops ? NETOBS_HAS_DROPS : 0;
		flow.rtt_ns = flows[i].rtt_ns;
		flow.rtt_samples = flows[i].samples;
		flow.retransmits = flows[i].retransmits;
		flow.drop_packets = flows[i].drops;
		assert_int_equal(netobs_groups_add(groups, &flow), 0);
	}
	take_top(groups, NETOBS_GROUP_BY_RTT, 0);
	assert_string_equal(row_text(groups, 0, 0), "10.0.0.3");
	row = netobs_groups_row(groups, 1);
	assert_int_equal(row->sum.rtt_samples, 4);
	assert_int_equal(row->sum.rtt_sum_ns, 40 + 3 * 20);
	assert_int_equal(row->sum.retransmits, 6);
	take_top(groups, NETOBS_GROUP_BY_DROPS, 0);
	assert_string_equal(row_text(groups, 0, 0), "10.0.0.3");
	assert_int_equal(netobs_groups_row(groups, 0)->sum.drop_packets, 9);
	row = netobs_groups_row(groups, 1);
	assert_int_equal(row->sum.drop_packets, 7);
	assert_true(netobs_group_json(groups, row, 0, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"PktDropPackets\":7"));
}

TEST(intervals_are_merged_into_the_groups_since_the_start)
{
	struct netobs_groups *last = make_groups("src", 0);
	struct netobs_groups *total = make_groups("src", 0);
	struct netobs_groups *others = make_groups("dst", 0);
	const struct netobs_flow flow = make_tcp_flow(1, 40000, 2, 443);

	for (int i = 0; i < 3; i++) {
		netobs_groups_clear(last);
		netobs_groups_add(last, &flow);
		assert_int_equal(netobs_groups_merge(total, last), 0);
	}
	assert_int_equal(take_top(total, NETOBS_GROUP_BY_BYTES, 0).total.flows,
			 3);
	assert_int_equal(netobs_groups_row(total, 0)->sum.bytes, 300);
	assert_int_equal(take_top(last, NETOBS_GROUP_BY_BYTES, 0).total.flows, 1);
	assert_int_equal(netobs_groups_merge(total, others), -EINVAL);
	assert_int_equal(netobs_groups_merge(total, total), -EINVAL);
	netobs_groups_free(others);
	netobs_groups_free(total);
	netobs_groups_free(last);
}

/* Another interval may be the first one that knows it. A terminal gets no control characters. */
TEST(a_name_that_is_found_later_is_that_of_the_group)
{
	struct netobs_groups *last = make_groups("container", 0);
	struct netobs_groups *total = make_groups("container", 0);
	struct netobs_process process = { .sz = sizeof(process),
					  .container_id = "c0ffee" };
	struct netobs_flow flow = make_tcp_flow(1, 40000, 2, 443);

	flow.src_process = &process;
	netobs_groups_add(last, &flow);
	assert_int_equal(netobs_groups_merge(total, last), 0);
	strcpy(process.container_name, "we\033b");
	netobs_groups_add(last, &flow);
	assert_int_equal(netobs_groups_merge(total, last), 0);
	assert_int_equal(take_top(total, NETOBS_GROUP_BY_BYTES, 0).groups, 1);
	assert_int_equal(netobs_groups_row(total, 0)->sum.bytes, 300);
	assert_non_null(strstr(row_text(total, 0, 0), " (c0ffee)"));
	assert_null(strchr(row_text(total, 0, 0), '\033'));
	netobs_groups_free(total);
	netobs_groups_free(last);
}

/* ---- Rows ---------------------------------------------------------------------------- */

/* Not in the order of the whole values, which rows with equal counts have. */
GROUPS_TEST(rows_can_be_sorted_by_a_key, "src,port", 0)
{
	static const uint16_t ports[] = { 443, 8080, 22, 53 };
	static const char *const sorted[] = { "22/TCP", "53/TCP", "443/TCP",
					      "8080/TCP" };
	struct netobs_groups_top top = { .sz = sizeof(top),
					 .sort = NETOBS_GROUP_BY_KEY,
					 .key = 1 };

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		const struct netobs_flow flow =
			make_tcp_flow((uint8_t)(9 - i), 40000, 2, ports[i]);

		netobs_groups_add(groups, &flow);
	}
	assert_int_equal(netobs_groups_top(groups, &top), 4);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
		assert_string_equal(row_text(groups, i, 1), sorted[i]);
	top.key = 2;
	assert_int_equal(netobs_groups_top(groups, &top), -EINVAL);
}

static int has_many_packets(const struct netobs_group *group, void *user)
{
	return group->sum.packets > *(const uint64_t *)user;
}

GROUPS_TEST(rows_are_those_that_are_wanted, "src", 0)
{
	uint64_t least = 6;
	struct netobs_groups_top top = { .sz = sizeof(top),
					 .most = 1,
					 .want = has_many_packets,
					 .user = &least };

	for (uint8_t i = 0; i < 5; i++) {
		const struct netobs_flow flow = make_tcp_flow(i, 40000, 9, 443);

		for (int n = 0; n <= i; n++)
			netobs_groups_add(groups, &flow);
	}
	assert_int_equal(netobs_groups_top(groups, &top), 1);
	assert_int_equal(top.groups, 3);
	assert_string_equal(row_text(groups, 0, 0), "10.0.0.4");
	assert_int_equal(top.others.flows, 3 + 4);
	assert_int_equal(top.total.flows, 15);
}

GROUPS_TEST(groups_are_json_as_flows_are, "client,port", 0)
{
	char line[NETOBS_GROUP_JSON_MAX];
	struct netobs_flow flow = make_tcp_flow(1, 40000, 2, 443);
	int len;

	flow.start_ns = 1000000;
	flow.end_ns = 3000000;
	netobs_groups_add(groups, &flow);
	flow.src[15] = 3;
	netobs_groups_add(groups, &flow);
	take_top(groups, NETOBS_GROUP_BY_BYTES, 1);
	len = netobs_group_json(groups, netobs_groups_row(groups, 0), 5000000,
				line, sizeof(line));
	assert_int_equal(len, strlen(line));
	assert_string_equal(
		line,
		"{\"type\":\"group\",\"TimeMs\":5,\"ClientAddr\":\"10.0.0.1\","
		"\"ServerPort\":443,\"Proto\":6,\"TimeFlowStartMs\":1,"
		"\"TimeFlowEndMs\":3,\"Flows\":1,\"Packets\":3,\"Bytes\":100}");
	netobs_group_json(groups, NULL, 5000000, line, sizeof(line));
	assert_string_equal(
		line, "{\"type\":\"others\",\"TimeMs\":5,\"TimeFlowStartMs\":1,"
		      "\"TimeFlowEndMs\":3,\"Flows\":1,\"Packets\":3,"
		      "\"Bytes\":100}");
	assert_int_equal(netobs_group_json(groups, NULL, 0, line, 20), -ENOBUFS);
}

TEST(wrong_arguments_are_refused)
{
	char why[NETOBS_ERROR_MAX];
	struct netobs_groups_opts opts = { .sz = sizeof(opts), .error = &why };
	struct netobs_groups_top top = { .sz = sizeof(top),
					 .sort = NETOBS_GROUP_BY_DROPS + 1 };
	struct netobs_groups *groups = NULL;
	struct netobs_flow flow = make_tcp_flow(1, 2, 3, 4);
	char text[8];

	assert_int_equal(netobs_groups_new(&opts, &groups), -EINVAL);
	assert_string_equal(why, "keys: groups need a key");
	opts.keys = "flow";
	assert_int_equal(netobs_groups_new(&opts, &groups), -EINVAL);
	opts.keys = "hots";
	assert_int_equal(netobs_groups_new(&opts, &groups), -EINVAL);
	assert_string_equal(
		why, "keys: there is no key 'hots'; did you mean 'host'?");
	opts.keys = "src";
	opts.max_groups = 1u + INT_MAX;
	assert_int_equal(netobs_groups_new(&opts, &groups), -EINVAL);
	assert_string_equal(why, "max_groups: more than 2147483647");
	assert_int_equal(netobs_groups_new(NULL, &groups), -EINVAL);
	assert_null(groups);

	groups = make_groups("src", 0);
	flow.sz = 1;
	assert_int_equal(netobs_groups_add(groups, &flow), -EINVAL);
	assert_int_equal(netobs_groups_add(groups, NULL), -EINVAL);
	assert_int_equal(netobs_groups_top(groups, &top), -EINVAL);
	assert_null(netobs_groups_row(groups, 0));
	assert_int_equal(netobs_group_text(groups, NULL, 0, NULL, text,
					   sizeof(text)),
			 -EINVAL);
	netobs_groups_clear(NULL);
	netobs_groups_free(NULL);
	netobs_groups_free(groups);
}

/* 10.0.0.1 asks 10.0.0.2:80 through NAT as 10.0.0.9:5000. */
GROUPS_TEST(a_conversation_has_one_group, "conversation", 0)
{
	struct netobs_flow asks = make_tcp_flow(1, 40000, 2, 80);
	struct netobs_flow answers = make_tcp_flow(2, 80, 9, 5000);
	struct netobs_flow direct = make_tcp_flow(3, 40000, 2, 80);
	char json[NETOBS_GROUP_JSON_MAX];

	asks.has |= NETOBS_HAS_CONVERSATION;
	asks.conversation_id = 0xabcdef;
	answers.has |= NETOBS_HAS_CONVERSATION | NETOBS_HAS_XLAT |
		       NETOBS_HAS_XLAT_PORTS;
	answers.conversation_id = 0xabcdef;
	memcpy(answers.xlat_src, answers.src, sizeof(answers.src));
	memcpy(answers.xlat_dst, asks.src, sizeof(asks.src));
	answers.xlat_src_port = 80;
	answers.xlat_dst_port = 40000;
	assert_int_equal(netobs_groups_add(groups, &answers), 0);
	assert_int_equal(netobs_groups_add(groups, &asks), 0);
	assert_int_equal(netobs_groups_add(groups, &direct), 0);
	direct = make_tcp_flow(2, 80, 3, 40000);
	assert_int_equal(netobs_groups_add(groups, &direct), 0);
	assert_int_equal(take_top(groups, NETOBS_GROUP_BY_KEY, 0).groups, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct netobs_group *row = netobs_groups_row(groups, i);
		const bool is_direct = strstr(row_text(groups, i, 0), "10.0.0.3");

		assert_int_equal(row->sum.flows, 2);
		assert_int_equal(row->sum.packets, 6);
		assert_string_equal(
			row_text(groups, i, 0),
			is_direct ? "10.0.0.3:40000 \u2192 10.0.0.2:80/TCP" :
				    "10.0.0.1:40000 \u2192 10.0.0.2:80/TCP");
		assert_true(netobs_group_json(groups, row, 0, json,
					      sizeof(json)) > 0);
		assert_true(is_direct ||
			    strstr(json, "\"ConversationId\":\"0000000000abcdef\","
					 "\"ClientAddr\":\"10.0.0.1\","
					 "\"ServerAddr\":\"10.0.0.2\","
					 "\"ClientPort\":40000,\"ServerPort\":80,"
					 "\"Proto\":6"));
	}
}
