// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records as protobuf: what NetObserv's readers need, and our own fields. */
#include "lib_record.h"

#include <arpa/inet.h>

TEST(entry_is_a_record_among_records)
{
	static uint8_t buf[3 * PBFLOW_ENTRY_MAX];
	struct netobs_flow flow = record_flow();
	char name[PACK_NAME_MAX];
	struct netobs_point points[PACK_POINTS_MAX];
	Pbflow__Records *records;
	size_t len = 0;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = (struct netobs_point){ .name = name, .direction = 1 };
	len += pbflow_entry(&flow, &record_options, buf);
	assert_int_equal(buf[1], len - 2); /* one byte of length */
	flow.points = points;
	flow.n_points = 3;
	len += pbflow_entry(&flow, &record_options, buf + len);
	flow.n_points = PACK_POINTS_MAX;
	len += pbflow_entry(&flow, &record_options, buf + len);

	records = pbflow__records__unpack(NULL, len, buf);
	assert_non_null(records);
	assert_int_equal(records->n_entries, 3);
	assert_int_equal(records->entries[0]->n_dup_list, 1);
	assert_int_equal(records->entries[1]->n_dup_list, 3);
	assert_int_equal(records->entries[2]->n_dup_list, PACK_POINTS_MAX);
	assert_string_equal(records->entries[2]->dup_list[255]->interface, name);
	pbflow__records__free_unpacked(records, NULL);
}

TEST(largest_record_fits)
{
	static const struct netobs_point largest = {
		.ifindex = UINT32_MAX,
		.netns_inode = UINT32_MAX,
		.direction = 255,
		.name = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
			"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
			"\xff",
	};
	static uint8_t buf[PBFLOW_RECORD_MAX];
	struct pbflow_options every_option;
	struct netobs_process process;
	struct netobs_flow flow;
	struct netobs_point points[PACK_POINTS_MAX];

	memset(every_option.agent_ip, 0xff, sizeof(every_option.agent_ip));
	memset(&flow, 0xff, sizeof(flow));
	flow.end_ns = flow.start_ns = INT64_MIN;
	flow.ethertype = 0x86dd;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = (struct netobs_point){
			.name = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
			.direction = 255,
		};
	flow.points = points;
	flow.n_points = ARRAY_SIZE(points) + 1;
	memset(&process, 0xff, sizeof(process));
	flow.src_process = flow.dst_process = &process;
	assert_in_range(pbflow_record(&flow, &record_options, buf), 1,
			sizeof(buf));
	points[0] = largest;
	flow.n_points = 1;
	assert_in_range(pbflow_record(&flow, &every_option, buf), 1,
			PBFLOW_FIELDS_MAX + PBFLOW_POINT_MAX +
				2 * PBFLOW_PROCESS_MAX);
}

/* Also where each byte of all names has to be replaced. */
TEST(names_that_are_not_utf8_are_repaired)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
		{ "eth0", "eth0" },
		{ "v\xff"
		  "0",
		  "v\xef\xbf\xbd"
		  "0" },
		{ "\xc3\xa9", "\xc3\xa9" },   /* e acute */
		{ "a\xc3", "a\xef\xbf\xbd" }, /* cut off */
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	};
	static uint8_t buf[PBFLOW_RECORD_MAX];
	struct netobs_point points[PACK_POINTS_MAX];
	struct netobs_flow flow = record_flow();
	char name[PACK_NAME_MAX + 1] = "";

	flow.points = points;
	flow.n_points = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Pbflow__Record *record;

		points[0] = (struct netobs_point){ .name = cases[i].name };
		record = record_through(&flow);
		assert_string_equal(record->dup_list[0]->interface,
				    cases[i].expected);
		record_free(record);
	}
	memset(name, 0xff, PACK_NAME_MAX);
	flow.n_points = PACK_POINTS_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = (struct netobs_point){ .name = name };
	assert_in_range(pbflow_record(&flow, &record_options, buf),
			96 * PACK_POINTS_MAX, sizeof(buf));
}

/* ---- What flowlogs-pipeline needs -------------------------------------------------- */

TEST(needed_messages_are_always_there)
{
	const struct netobs_flow empty = { .sz = sizeof(empty) };
	Pbflow__Record *record = record_through(&empty);

	assert_non_null(record->transport);
	assert_non_null(record->network);
	assert_non_null(record->network->src_addr);
	assert_non_null(record->network->dst_addr);
	assert_non_null(record->data_link);
	assert_non_null(record->time_flow_start);
	assert_non_null(record->time_flow_end);
	assert_non_null(record->time_flow_rtt);
	assert_non_null(record->agent_ip);
	assert_int_equal(record->n_dup_list, 1);
	assert_string_equal(record->dup_list[0]->interface, "unknown");
	record_free(record);
}

TEST(ipv6_has_16_bytes)
{
	struct netobs_flow flow = record_flow();
	Pbflow__Record *record;

	flow.ethertype = 0x86dd;
	inet_pton(AF_INET6, "2001:db8::1", flow.src);
	inet_pton(AF_INET6, "::ffff:192.0.2.1", flow.dst);
	record = record_through(&flow);
	assert_int_equal(record->network->src_addr->ip_family_case,
			 PBFLOW__IP__IP_FAMILY_IPV6);
	assert_int_equal(record->network->src_addr->ipv6.len, 16);
	assert_memory_equal(record->network->src_addr->ipv6.data, flow.src, 16);
	assert_int_equal(record->network->dst_addr->ipv6.len, 16);
	record_free(record);
}

TEST(ipv4_is_a_number)
{
	struct netobs_flow flow = record_flow();
	Pbflow__Record *record = record_through(&flow);

	assert_int_equal(record->network->src_addr->ipv4, 0x0a800222);
	assert_int_equal(record->agent_ip->ipv4, 0x0a010203);
	record_free(record);

	/* 0.0.0.0 is an address too. */
	memset(flow.src + 12, 0, 4);
	record = record_through(&flow);
	assert_int_equal(record->network->src_addr->ip_family_case,
			 PBFLOW__IP__IP_FAMILY_IPV4);
	record_free(record);
}

TEST(interfaces_are_in_dup_list_alone)
{
	static const struct netobs_point points[] = {
		{ .name = "eth0", .direction = NETOBS_EGRESS },
		{ .name = "veth1", .direction = NETOBS_INGRESS },
		{ .direction = NETOBS_EGRESS },
	};
	struct netobs_flow flow = record_flow();
	Pbflow__Record *record;

	flow.points = points;
	flow.n_points = ARRAY_SIZE(points);
	record = record_through(&flow);
	assert_string_equal(record->interface, "");
	assert_false(record->duplicate);
	assert_int_equal(record->direction, PBFLOW__DIRECTION__EGRESS);
	assert_int_equal(record->n_dup_list, 3);
	assert_string_equal(record->dup_list[0]->interface, "eth0");
	assert_int_equal(record->dup_list[0]->direction, 1);
	assert_string_equal(record->dup_list[1]->interface, "veth1");
	assert_int_equal(record->dup_list[1]->direction, 0);
	assert_string_equal(record->dup_list[2]->interface, "unknown");
	record_free(record);
}

TEST(numbers_fit_what_readers_make_of_them)
{
	struct netobs_flow flow = record_flow();
	Pbflow__Record *record;

	flow.packets = 1ULL << 40;
	flow.l2_bytes = UINT64_MAX;
	flow.tcp_flags = UINT16_MAX;
	flow.dscp = UINT8_MAX;
	record = record_through(&flow);
	assert_int_equal(record->packets, UINT32_MAX);
	assert_true(record->bytes == UINT64_MAX);
	assert_in_range(record->flags, 0, UINT16_MAX);
	assert_in_range(record->network->dscp, 0, UINT8_MAX);
	record_free(record);
}

/* What NetObserv's agent has for the same packets, where that can be known. */
TEST(flags_are_those_of_netobserv)
{
	enum {
		SA = NETOBS_TCP_SYN_ACK,
		FA = NETOBS_TCP_FIN_ACK,
		RA = NETOBS_TCP_RST_ACK
	};
	static const struct {
		uint16_t seen;
		uint8_t combined;
		uint64_t packets;
		uint32_t expected;
	} cases[] = {
		{ 0x02, 0, 1, 0x02 },	/* SYN */
		{ 0xc2, 0, 1, 0x02 },	/* SYN with ECE and CWR */
		{ 0x12, SA, 1, 0x100 }, /* SYN+ACK */
		{ 0x12, 0, 9, 0x12 },	/* a client: SYN, then ACK */
		{ 0x12, SA, 9, 0x110 }, /* a server */
		{ 0x1b, FA, 9, 0x212 }, /* a client: SYN, PSH+ACK, FIN+ACK */
		{ 0x1b, SA | FA, 9, 0x310 }, /* its server */
		{ 0x13, SA | FA, 2, 0x300 }, /* and no other packet */
		{ 0x14, RA, 1, 0x400 },	     /* refused */
		{ 0x16, 0, 9, 0x16 },	     /* a bare RST behind others */
		{ 0x04, 0, 1, 0x04 },
		{ 0x01, 0, 1, 0x01 },
		{ 0x29, 0, 1, 0x01 }, /* FIN+PSH+URG */
		{ 0x28, 0, 1, 0x08 },
		{ 0x20, 0, 1, 0x20 },
		{ 0x110, 0, 9, 0x10 }, /* the ninth bit is another thing */
		{ 0xfff, SA | FA | RA, 9, 0x710 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netobs_flow flow = record_flow();
		Pbflow__Record *record;

		flow.tcp_flags = cases[i].seen;
		flow.tcp_combined = cases[i].combined;
		flow.packets = cases[i].packets;
		record = record_through(&flow);
		assert_int_equal(record->flags, cases[i].expected);
		assert_int_equal(record->tcp_flags, cases[i].seen);
		record_free(record);
	}
}

TEST(bytes_are_those_of_frames)
{
	struct netobs_flow flow = record_flow();
	Pbflow__Record *record = record_through(&flow);

	assert_int_equal(record->bytes, 1234567);
	assert_int_equal(record->l3_bytes, 1220749);
	record_free(record);
	/* A tunnel device has no frames. */
	flow.has &= ~(uint64_t)NETOBS_HAS_MAC;
	record = record_through(&flow);
	assert_int_equal(record->bytes, 1220749);
	assert_int_equal(record->l3_bytes, 1220749);
	record_free(record);
}

TEST(sampling_is_that_of_the_record)
{
	static const struct pbflow_options unknown_agent;
	struct netobs_flow flow = record_flow();

	flow.sampling = 50;
	for (int is_sampled = 0; is_sampled < 2; is_sampled++) {
		uint8_t buf[PBFLOW_RECORD_MAX];
		Pbflow__Record *record;

		flow.has &= ~(uint64_t)NETOBS_HAS_SAMPLING;
		flow.has |= is_sampled ? NETOBS_HAS_SAMPLING : 0;
		record = record_unpack(buf, pbflow_record(&flow, &unknown_agent,
							  buf));
		assert_int_equal(record->sampling, is_sampled ? 50 : 0);
		assert_null(record->agent_ip);
		record_free(record);
	}
}

TEST(nanoseconds_count_forward)
{
	struct netobs_flow flow = record_flow();
	Pbflow__Record *record;

	flow.start_ns = -1;
	flow.end_ns = 0;
	record = record_through(&flow);
	assert_int_equal(record->time_flow_start->seconds, -1);
	assert_int_equal(record->time_flow_start->nanos, 999999999);
	assert_int_equal(record->time_flow_end->seconds, 0);
	record_free(record);
}

TEST(optional_fields_need_their_bits)
{
	struct netobs_flow flow = record_flow();
	Pbflow__Record *record;

	flow.has = 0;
	flow.icmp_type = flow.icmp_code = 9;
	record = record_through(&flow);
	assert_int_equal(record->transport->src_port, 0);
	assert_int_equal(record->flags, 0);
	assert_int_equal(record->icmp_type, 0);
	assert_int_equal(record->data_link->src_mac, 0);
	assert_int_equal(record->tcp_flags, 0);
	assert_int_equal(record->vlan_case, PBFLOW__RECORD__VLAN__NOT_SET);
	assert_null(record->tunnel);
	record_free(record);
	flow.has = NETOBS_HAS_VLAN; /* 0 is one, too */
	record = record_through(&flow);
	assert_int_equal(record->vlan_case, PBFLOW__RECORD__VLAN_VLAN_ID);
	record_free(record);
	flow.has = NETOBS_HAS_ICMP;
	record = record_through(&flow);
	assert_int_equal(record->icmp_type, 9);
	assert_int_equal(record->icmp_code, 9);
	record_free(record);
}
