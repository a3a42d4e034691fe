/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Groups: their keys, their sums, their number, and the names in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The command's parts are in no library: compiled in here. */
#include "cli/view/by.c"
#include "group/key_table.c"
#include "group/group.c"
#include "service/text/human.c"
#include "group/names.c"
#include "cli/view/rows.c"
#include "group/server.c"
#include "cli/view/view.c"

enum { SYN = 0x02, ACK = 0x10 };

/* 10.0.0.@src:@sport -> 10.0.0.@dst:@dport */
static struct netobs_flow make_flow(uint8_t src, uint16_t sport, uint8_t dst,
				    uint16_t dport)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP,
		.packets = 3,
		.bytes = 100,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, src },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, dst },
		.src_port = sport,
		.dst_port = dport,
		.tcp_flags = ACK,
		.proto = 6,
	};
}

static struct by parse_by(const char *text)
{
	char why[256] = "";
	struct by by;

	if (by_parse(text, &by, why, sizeof(why)) < 0)
		fail_msg("%s: %s", text, why);
	return by;
}

/* The text of the first key of @flow's group. */
static const char *key_text(const char *keys, const struct netobs_flow *flow)
{
	static struct servers servers;
	static char text[160];
	const struct by by = parse_by(keys);
	_Alignas(uint64_t) uint8_t value[BY_SIZE];

	by_fill(&by, flow, server_find(&servers, flow), BY_SOURCE, value);
	by_text(&by, 0, value, NULL, text, sizeof(text));
	return text;
}

static void keys_that_are_wrong_are_explained(void **state)
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
	struct by by;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(by_parse(cases[i][0], &by, why, sizeof(why)),
				 -EINVAL);
		assert_non_null(strstr(why, cases[i][1]));
	}
	assert_int_equal(parse_by("flow").n, 0);
}

static void values_are_named_as_in_flows(void **state)
{
	struct netobs_point point = { .ifindex = 2,
				      .direction = NETOBS_INGRESS,
				      .name = "et\nh0" };
	struct netobs_flow flow = make_flow(1, 40000, 2, 443);

	(void)state;
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

static void the_server_is_found_in_both_directions(void **state)
{
	static const struct {
		uint16_t sport, dport, flags;
		uint8_t combined, proto;
		enum by_end server;
	} cases[] = {
		{ 40000, 443, ACK, 0, 6, BY_DESTINATION },
		{ 443, 40000, ACK, 0, 6, BY_SOURCE },
		{ 443, 40000, SYN, 0, 6, BY_DESTINATION },
		{ 40000, 443, SYN | ACK, NETOBS_TCP_SYN_ACK, 6, BY_SOURCE },
		{ 123, 123, 0, 0, 17, BY_SOURCE }, /* the lower address */
	};
	static struct servers servers;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netobs_flow flow =
			make_flow(1, cases[i].sport, 2, cases[i].dport);

		flow.proto = cases[i].proto;
		flow.tcp_flags = cases[i].flags;
		flow.tcp_combined = cases[i].combined;
		flow.has = NETOBS_HAS_PORTS |
			   (flow.proto == 6 ? NETOBS_HAS_TCP : 0U);
		memset(&servers, 0, sizeof(servers));
		assert_int_equal(server_find(&servers, &flow), cases[i].server);
	}
}

static void a_server_that_accepted_a_connection_is_remembered(void **state)
{
	struct netobs_flow there = make_flow(1, 40000, 2, 50051);
	struct netobs_flow back = make_flow(2, 50051, 1, 40000);
	struct netobs_flow accepted = back;
	static struct servers servers;

	(void)state;
	assert_int_equal(server_find(&servers, &there), BY_SOURCE);
	accepted.tcp_flags |= SYN;
	accepted.tcp_combined = NETOBS_TCP_SYN_ACK;
	assert_int_equal(server_find(&servers, &accepted), BY_SOURCE);
	assert_int_equal(server_find(&servers, &there), BY_DESTINATION);
	assert_int_equal(server_find(&servers, &back), BY_SOURCE);
}

static void without_ports_replies_come_from_the_server(void **state)
{
	static struct servers servers;
	struct netobs_flow flow = make_flow(1, 0, 2, 0);

	(void)state;
	flow.has = NETOBS_HAS_ICMP;
	flow.proto = IPPROTO_ICMP;
	flow.icmp_type = 8;
	assert_int_equal(server_find(&servers, &flow), BY_DESTINATION);
	flow.icmp_type = 0;
	assert_int_equal(server_find(&servers, &flow), BY_SOURCE);
	flow.proto = IPPROTO_ICMPV6;
	flow.icmp_type = 129;
	assert_int_equal(server_find(&servers, &flow), BY_SOURCE);
	flow.has = NETOBS_HAS_PORTS;
	flow.proto = 17;
	flow.src_port = flow.dst_port = 5353;
	flow.dst[12] = 224;
	assert_int_equal(server_find(&servers, &flow), BY_DESTINATION);
}

/* Whatever flows are grouped by, all of them are in the groups, once. */
static void groups_add_up_to_the_flows(void **state)
{
	static const char *const keys[] = {
		"src",	   "dst",     "client",	       "pair",
		"service", "port",    "proto",	       "interface",
		"vlan",	   "src,dst", "client,service"
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		const struct view_options options = { .by = parse_by(keys[k]) };
		struct tally sum = { 0 };
		struct view view;

		assert_int_equal(view_init(&view, &options, 0), 0);
		for (int i = 0; i < 1000; i++) {
			struct netobs_flow flow =
				make_flow((uint8_t)(i % 7), (uint16_t)i,
					  (uint8_t)(i % 5), 443);

			flow.bytes = (uint64_t)i;
			assert_int_equal(view_add(&view, &flow), 0);
		}
		view_turn(&view);
		for (size_t i = 0; i < view.rows.n; i++)
			tally_add(&sum, &rows_at(&view.rows, i)->tally);
		assert_memory_equal(&sum, &view.sum, sizeof(sum));
		assert_int_equal(sum.flows, 1000);
		assert_int_equal(sum.bytes, 999 * 1000 / 2);
		view_free(&view);
	}
}

static void a_host_has_what_it_sent_and_what_it_received(void **state)
{
	const struct view_options options = { .by = parse_by("host"),
					      .order = { SORT_SENT, 0, 0 } };
	const struct netobs_flow there = make_flow(1, 40000, 2, 443);
	struct netobs_flow back = make_flow(2, 443, 1, 40000);
	struct view view;

	(void)state;
	back.bytes = 1000;
	assert_int_equal(view_init(&view, &options, 0), 0);
	view_add(&view, &there);
	view_add(&view, &back);
	view_turn(&view);
	assert_int_equal(view.rows.n, 2);
	assert_int_equal(rows_at(&view.rows, 0)->value[15], 2);
	assert_int_equal(rows_at(&view.rows, 0)->tally.bytes, 1100);
	assert_int_equal(rows_at(&view.rows, 0)->tally.sent_bytes, 1000);
	assert_int_equal(rows_at(&view.rows, 1)->tally.bytes, 1100);
	assert_int_equal(rows_at(&view.rows, 1)->tally.sent_bytes, 100);
	assert_int_equal(view.sum.bytes, 1100);
	view_free(&view);
}

static void a_million_groups_take_bounded_memory_and_lose_nothing(void **state)
{
	enum { GROUPS = 1000000, SHOWN = 100 };
	const struct view_options options = { .by = parse_by("src"),
					      .top = SHOWN };
	struct netobs_flow flow = make_flow(1, 40000, 2, 443);
	struct tally rest;
	struct view view;

	(void)state;
	assert_int_equal(view_init(&view, &options, 0), 0);
	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < GROUPS; i++) {
			memcpy(flow.src, &i, sizeof(i));
			assert_int_equal(view_add(&view, &flow), 0);
		}
		assert_in_range(view.groups.n, VIEW_GROUPS / 2, VIEW_GROUPS);
		assert_int_equal(view.groups.size, VIEW_GROUPS);
		/* A large one has a row, however late it comes. */
		flow.bytes = 1000;
		memset(flow.src, 0xff, sizeof(uint32_t));
		assert_int_equal(view_add(&view, &flow), 0);
		flow.bytes = 100;
		view_turn(&view);
		assert_int_equal(view.rows.n, SHOWN);
		assert_int_equal(rows_at(&view.rows, 0)->tally.bytes, 1000);
		assert_true(view.has_others);
		rest = rows_rest(&view.rows, view.rows.n);
		assert_int_equal(rest.flows, GROUPS + 1 - SHOWN);
		assert_int_equal(rest.packets, 3 * (GROUPS + 1 - SHOWN));
		assert_int_equal(rest.bytes, 100 * (GROUPS + 1 - SHOWN));
	}
	view_free(&view);
}

static void sorts_are_columns_that_are_shown(void **state)
{
	static const struct {
		const char *by, *sort;
		bool is_lines;
		const char *why; /* NULL: it is fine */
	} cases[] = {
		{ "flow", "packets", false, NULL },
		{ "flow", "duration", true, NULL },
		{ "flow", "flows", true,
		  "there are bytes, packets, duration, time" },
		{ "flow", "src", true,
		  "there are bytes, packets, duration, time" },
		{ "flow", "time", false, "no such column" },
		{ "src", "src", false, NULL },
		{ "src,dst", "dst", true, NULL },
		{ "src", "dst", false, "and the keys of --by" },
		{ "src", "sent", false, "no such column" },
		{ "host", "sent", false, NULL },
		{ "host", "packet", false, "did you mean 'packets'?" },
		{ "host", "rtt", false, "no such column" },
	};
	char why[192];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct by by = parse_by(cases[i].by);
		struct order order;
		int r = view_parse_sort(cases[i].sort, &by, cases[i].is_lines,
					&order, why, sizeof(why));

		assert_int_equal(r, cases[i].why ? -EINVAL : 0);
		if (cases[i].why && !strstr(why, cases[i].why))
			fail_msg("%s: %s", cases[i].sort, why);
	}
}

/* As if all samples of the group were one flow's, whatever order they come in. */
static void round_trip_times_of_a_group_are_the_mean_of_samples(void **state)
{
	struct view_options options = { .by = parse_by("dst") };
	const struct {
		uint8_t dst;
		uint32_t samples, retransmits;
		uint64_t rtt_ns;
	} flows[] = {
		{ 2, 1, 0, 40 },
		{ 2, 3, 5, 20 },
		{ 2, 0, 1, 999 }, /* none of this record */
		{ 3, 2, 0, 30 },
	};
	char why[192];
	struct view view;

	(void)state;
	options.by.shows_rtt = true;
	assert_int_equal(view_parse_sort("rtt", &options.by, false,
					 &options.order, why, sizeof(why)),
			 0);
	assert_int_equal(view_init(&view, &options, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
		struct netobs_flow flow = make_flow(1, 40000, flows[i].dst, 443);

		flow.has |= NETOBS_HAS_TCP_HEALTH;
		if (flows[i].samples)
			flow.has |= NETOBS_HAS_RTT;
		flow.rtt_ns = flows[i].rtt_ns;
		flow.rtt_samples = flows[i].samples;
		flow.retransmits = flows[i].retransmits;
		assert_int_equal(view_add(&view, &flow), 0);
	}
	view_turn(&view);
	assert_int_equal(view.rows.n, 2);
	assert_int_equal(rows_at(&view.rows, 0)->value[15], 3);
	assert_int_equal(tally_rtt_ns(&rows_at(&view.rows, 0)->tally), 30);
	assert_int_equal(tally_rtt_ns(&rows_at(&view.rows, 1)->tally),
			 (40 + 3 * 20) / 4);
	assert_int_equal(rows_at(&view.rows, 1)->tally.retransmits, 6);
	view_free(&view);
}

/* Not in the order of the whole values, which rows with equal counts have. */
static void rows_can_be_sorted_by_a_key(void **state)
{
	struct view_options options = { .by = parse_by("src,port") };
	static const uint16_t ports[] = { 443, 8080, 22, 53 };
	char why[192];
	struct view view;

	(void)state;
	assert_int_equal(view_parse_sort("port", &options.by, false,
					 &options.order, why, sizeof(why)),
			 0);
	assert_int_equal(view_init(&view, &options, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		const struct netobs_flow flow =
			make_flow((uint8_t)(9 - i), 40000, 2, ports[i]);

		view_add(&view, &flow);
	}
	view_turn(&view);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		static const char *const sorted[] = { "22/TCP", "53/TCP",
						      "443/TCP", "8080/TCP" };
		char text[64];

		by_text(&options.by, 1, rows_at(&view.rows, i)->value, NULL,
			text, sizeof(text));
		assert_string_equal(text, sorted[i]);
	}
	view_free(&view);
}

/* ---- Names ---------------------------------------------------------------------- */

/* 10.0.0.13 answers never; 10.0.0.14 has no name; others have one that is not clean. */
static bool look_up_test(const struct names_question *question, char *name,
			 size_t size)
{
	if (question->addr[15] == 13)
		for (;;)
			pause();
	snprintf(name, size, "host\033%u", question->addr[15]);
	return question->addr[15] != 14;
}

static const char *host_text(struct names *names, uint8_t last)
{
	const uint8_t addr[16] = { [10] = 0xff, 0xff, 10, 0, 0, last };
	static char text[NAMES_MAX];

	names_host(names, addr, text, sizeof(text));
	return text;
}

static void names_come_later_and_never_block(void **state)
{
	struct pollfd fd = { .events = POLLIN };
	struct names *names = NULL;

	(void)state;
	assert_int_equal(names_new(look_up_test, &names), 0);
	fd.fd = names_fd(names);
	assert_string_equal(host_text(names, 13), "10.0.0.13");
	assert_string_equal(host_text(names, 14), "10.0.0.14");
	assert_string_equal(host_text(names, 1), "10.0.0.1");
	while (strcmp(host_text(names, 1), "host?1") != 0) {
		assert_int_equal(poll(&fd, 1, 10000), 1);
		names_clear(names);
	}
	names_wait(names, 10); /* in vain, for one of them */
	assert_string_equal(host_text(names, 13), "10.0.0.13");
	assert_string_equal(host_text(names, 14), "10.0.0.14");
	names_free(names);
	names_clear(NULL); /* freed by a key, while names were waiting to be shown */
}

static void more_hosts_than_the_cache_holds_have_names_in_the_end(void **state)
{
	struct names *names = NULL;

	(void)state;
	assert_int_equal(names_new(look_up_test, &names), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		uint8_t addr[16] = { 0x20 };
		char text[NAMES_MAX];

		memcpy(addr + 4, &i, sizeof(i));
		names_host(names, addr, text, sizeof(text));
		if (i % QUEUE == 0)
			names_wait(names, 10000);
	}
	names_wait(names, 10000);
	host_text(names, 1);
	names_wait(names, 10000);
	assert_string_equal(host_text(names, 1), "host?1");
	names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_are_wrong_are_explained),
		cmocka_unit_test(values_are_named_as_in_flows),
		cmocka_unit_test(the_server_is_found_in_both_directions),
		cmocka_unit_test(a_server_that_accepted_a_connection_is_remembered),
		cmocka_unit_test(without_ports_replies_come_from_the_server),
		cmocka_unit_test(groups_add_up_to_the_flows),
		cmocka_unit_test(a_host_has_what_it_sent_and_what_it_received),
		cmocka_unit_test(
			a_million_groups_take_bounded_memory_and_lose_nothing),
		cmocka_unit_test(sorts_are_columns_that_are_shown),
		cmocka_unit_test(
			round_trip_times_of_a_group_are_the_mean_of_samples),
		cmocka_unit_test(rows_can_be_sorted_by_a_key),
		cmocka_unit_test(names_come_later_and_never_block),
		cmocka_unit_test(
			more_hosts_than_the_cache_holds_have_names_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
