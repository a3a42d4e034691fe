/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records as protobuf: the same bytes as NetObserv's, and what its readers need. */
#include "lib_lab.h"
#include "lib_test.h"

#include "pbflow/pbflow.h"
#include "util.h"

#include "flow.pb-c.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * As NetObserv's agent encodes it: 10.128.2.34:43211 to 10.131.0.17:443, with the
 * latency of a DNS query and an RTT.
 */
static const char golden[] =
	"0880101a0c08a1af80d80610d697ede701220c08a5af80d80610d697ede7012a10"
	"08a28480d480cb0210818480d480cb02320e0a050d2202800a12050d1100830a3a"
	"0908cbd10210bb0318064087ad4b48db0762050d0302010a689306a8014db00180"
	"8302ba010510c08db701c2010410c0a907d201060a0465746830";

/* A record with all of our own fields, as Python's protobuf encodes it. */
static const char own_golden[] =
	"0880101a0c08a1af80d80610d697ede701220c08a5af80d80610d697ede7012a00"
	"320e0a050d2202800a12050d1100830a3a0908cbd10210bb0318064087ad4b48db"
	"0762050d0302010a689204c20100d201100a0465746830c03e07c83e808080800f"
	"c03e8dc14ac83e13d03e00d83ead02e03e3ce83e40f03e05f83e02823f26080110"
	"001a050d0302010a2212121020010db800000000000000000000000228c0b80230"
	"b525";

static const struct pbflow_options options = {
	.agent_ip = { [10] = 0xff, 0xff, 10, 1, 2, 3 },
	.sampling = 1,
};

static const struct netobs_point eth0 = { .ifindex = 2, .name = "eth0" };

static size_t from_hex(const char *text, uint8_t *bytes)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(sscanf(text + 2 * i, "%2hhx", &bytes[i]), 1);
	return n;
}

static Pbflow__Record *unpack(const uint8_t *bytes, size_t len)
{
	Pbflow__Record *record = pbflow__record__unpack(NULL, len, bytes);

	assert_non_null(record);
	return record;
}

static Pbflow__Record *unpack_golden(void)
{
	uint8_t bytes[256];

	return unpack(bytes, from_hex(golden, bytes));
}

/* What of the golden record a flow has. */
static struct netobs_flow golden_flow(void)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP | NETOBS_HAS_MAC,
		.start_ns = 1795168161LL * NSEC_PER_SEC + 486230998,
		.end_ns = 1795168165LL * NSEC_PER_SEC + 486230998,
		.packets = 987,
		.bytes = 1220749,
		.l2_bytes = 1234567,
		.src = { [10] = 0xff, 0xff, 10, 128, 2, 34 },
		.dst = { [10] = 0xff, 0xff, 10, 131, 0, 17 },
		.src_port = 43211,
		.dst_port = 443,
		.ethertype = 0x0800,
		.tcp_flags = 0x13,
		.tcp_combined = NETOBS_TCP_FIN_ACK,
		.proto = 6,
		.n_points = 1,
		.points = &eth0,
	};
}

static Pbflow__Record *through(const struct netobs_flow *flow)
{
	static uint8_t buf[PBFLOW_RECORD_MAX];

	return unpack(buf, pbflow_record(flow, &options, buf));
}

static void drop(Pbflow__Record *record)
{
	pbflow__record__free_unpacked(record, NULL);
}

/* ---- The same bytes -------------------------------------------------------------- */

/* Each field of it, by name and value: flow.proto gives them the right numbers. */
static void schema_encodes_golden_record(void **state)
{
	Pbflow__Timestamp start = PBFLOW__TIMESTAMP__INIT, end = start;
	Pbflow__DataLink link = PBFLOW__DATA_LINK__INIT;
	Pbflow__Network network = PBFLOW__NETWORK__INIT;
	Pbflow__Transport transport = PBFLOW__TRANSPORT__INIT;
	Pbflow__IP src = PBFLOW__IP__INIT, dst = src, agent = src;
	Pbflow__Duration latency = PBFLOW__DURATION__INIT, rtt = latency;
	Pbflow__DupMapEntry entry = PBFLOW__DUP_MAP_ENTRY__INIT;
	Pbflow__DupMapEntry *list[] = { &entry };
	Pbflow__Record record = PBFLOW__RECORD__INIT;
	uint8_t expected[256], bytes[256];
	size_t len = from_hex(golden, expected);

	(void)state;
	start.seconds = 1795168161;
	end.seconds = 1795168165;
	start.nanos = end.nanos = 486230998;
	link.src_mac = 0x0a580a800222;
	link.dst_mac = 0x0a580a800201;
	src.ip_family_case = dst.ip_family_case = agent.ip_family_case =
		PBFLOW__IP__IP_FAMILY_IPV4;
	src.ipv4 = 0x0a800222;
	dst.ipv4 = 0x0a830011;
	agent.ipv4 = 0x0a010203;
	network.src_addr = &src;
	network.dst_addr = &dst;
	transport.src_port = 43211;
	transport.dst_port = 443;
	transport.protocol = 6;
	latency.nanos = 3000000;
	rtt.nanos = 120000;
	entry.interface = (char *)"eth0";

	record.eth_protocol = 0x0800;
	record.time_flow_start = &start;
	record.time_flow_end = &end;
	record.data_link = &link;
	record.network = &network;
	record.transport = &transport;
	record.bytes = 1234567;
	record.packets = 987;
	record.agent_ip = &agent;
	record.flags = 787;
	record.dns_id = 77;
	record.dns_flags = 0x8180;
	record.dns_latency = &latency;
	record.time_flow_rtt = &rtt;
	record.dup_list = list;
	record.n_dup_list = 1;

	assert_int_equal(pbflow__record__get_packed_size(&record), len);
	assert_int_equal(pbflow__record__pack(&record, bytes), len);
	assert_memory_equal(bytes, expected, len);
}

/* As a reader has it that knows NetObserv's fields alone. Returns the length. */
static size_t strip_own(uint8_t *bytes, size_t len)
{
	Pbflow__Record *record = unpack(bytes, len);

	for (size_t i = 0; i < record->n_dup_list; i++)
		record->dup_list[i]->if_index =
			record->dup_list[i]->netns_inode = 0;
	record->l3_bytes = record->tcp_flags = 0;
	record->ttl_min = record->ttl_max = 0;
	record->ecn_seen = record->end_reason = 0;
	len = pbflow__record__pack(record, bytes);
	drop(record);
	return len;
}

static void flow_encodes_as_golden_record(void **state)
{
	struct netobs_flow flow = golden_flow();
	uint8_t expected[256], bytes[PBFLOW_RECORD_MAX];
	Pbflow__Record *record = unpack_golden();
	size_t len;

	(void)state;
	for (int i = 0; i < 6; i++) {
		flow.src_mac[i] =
			(uint8_t)(record->data_link->src_mac >> (40 - 8 * i));
		flow.dst_mac[i] =
			(uint8_t)(record->data_link->dst_mac >> (40 - 8 * i));
	}
	/* This is not known of a flow. */
	record->dns_id = record->dns_flags = 0;
	pbflow__duration__free_unpacked(record->dns_latency, NULL);
	record->dns_latency = NULL;
	record->time_flow_rtt->nanos = 0;
	record->flags = 0x212; /* of the client */

	len = pbflow__record__pack(record, expected);
	assert_int_equal(strip_own(bytes, pbflow_record(&flow, &options, bytes)),
			 len);
	assert_memory_equal(bytes, expected, len);
	drop(record);
}

static void entry_is_a_record_among_records(void **state)
{
	static uint8_t buf[3 * PBFLOW_ENTRY_MAX];
	struct netobs_flow flow = golden_flow();
	char name[PACK_NAME_MAX];
	struct netobs_point points[PACK_POINTS_MAX];
	Pbflow__Records *records;
	size_t len = 0;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = (struct netobs_point){ .name = name, .direction = 1 };
	len += pbflow_entry(&flow, &options, buf);
	assert_int_equal(buf[1], len - 2); /* one byte of length */
	flow.points = points;
	flow.n_points = 3;
	len += pbflow_entry(&flow, &options, buf + len);
	flow.n_points = PACK_POINTS_MAX;
	len += pbflow_entry(&flow, &options, buf + len);

	records = pbflow__records__unpack(NULL, len, buf);
	assert_non_null(records);
	assert_int_equal(records->n_entries, 3);
	assert_int_equal(records->entries[0]->n_dup_list, 1);
	assert_int_equal(records->entries[1]->n_dup_list, 3);
	assert_int_equal(records->entries[2]->n_dup_list, PACK_POINTS_MAX);
	assert_string_equal(records->entries[2]->dup_list[255]->interface, name);
	pbflow__records__free_unpacked(records, NULL);
}

static void largest_record_fits(void **state)
{
	static uint8_t buf[PBFLOW_RECORD_MAX];
	struct netobs_flow flow;
	struct netobs_point points[PACK_POINTS_MAX];

	(void)state;
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
	assert_in_range(pbflow_record(&flow, &options, buf), 1, sizeof(buf));
}

/* Also where each byte of all names has to be replaced. */
static void names_that_are_not_utf8_are_repaired(void **state)
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
	struct netobs_flow flow = golden_flow();
	char name[PACK_NAME_MAX + 1] = "";

	(void)state;
	flow.points = points;
	flow.n_points = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Pbflow__Record *record;

		points[0] = (struct netobs_point){ .name = cases[i].name };
		record = through(&flow);
		assert_string_equal(record->dup_list[0]->interface,
				    cases[i].expected);
		drop(record);
	}
	memset(name, 0xff, PACK_NAME_MAX);
	flow.n_points = PACK_POINTS_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = (struct netobs_point){ .name = name };
	assert_in_range(pbflow_record(&flow, &options, buf),
			96 * PACK_POINTS_MAX, sizeof(buf));
}

/* ---- What flowlogs-pipeline needs -------------------------------------------------- */

static void needed_messages_are_always_there(void **state)
{
	const struct netobs_flow empty = { .sz = sizeof(empty) };
	Pbflow__Record *record = through(&empty);

	(void)state;
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
	drop(record);
}

static void ipv6_has_16_bytes(void **state)
{
	struct netobs_flow flow = golden_flow();
	Pbflow__Record *record;

	(void)state;
	flow.ethertype = 0x86dd;
	inet_pton(AF_INET6, "2001:db8::1", flow.src);
	inet_pton(AF_INET6, "::ffff:192.0.2.1", flow.dst);
	record = through(&flow);
	assert_int_equal(record->network->src_addr->ip_family_case,
			 PBFLOW__IP__IP_FAMILY_IPV6);
	assert_int_equal(record->network->src_addr->ipv6.len, 16);
	assert_memory_equal(record->network->src_addr->ipv6.data, flow.src, 16);
	assert_int_equal(record->network->dst_addr->ipv6.len, 16);
	drop(record);
}

static void ipv4_is_a_number(void **state)
{
	struct netobs_flow flow = golden_flow();
	Pbflow__Record *record = through(&flow);

	(void)state;
	assert_int_equal(record->network->src_addr->ipv4, 0x0a800222);
	assert_int_equal(record->agent_ip->ipv4, 0x0a010203);
	drop(record);

	/* 0.0.0.0 is an address too. */
	memset(flow.src + 12, 0, 4);
	record = through(&flow);
	assert_int_equal(record->network->src_addr->ip_family_case,
			 PBFLOW__IP__IP_FAMILY_IPV4);
	drop(record);
}

static void interfaces_are_in_dup_list_alone(void **state)
{
	static const struct netobs_point points[] = {
		{ .name = "eth0", .direction = NETOBS_EGRESS },
		{ .name = "veth1", .direction = NETOBS_INGRESS },
		{ .direction = NETOBS_EGRESS },
	};
	struct netobs_flow flow = golden_flow();
	Pbflow__Record *record;

	(void)state;
	flow.points = points;
	flow.n_points = ARRAY_SIZE(points);
	record = through(&flow);
	assert_string_equal(record->interface, "");
	assert_false(record->duplicate);
	assert_int_equal(record->direction, PBFLOW__DIRECTION__EGRESS);
	assert_int_equal(record->n_dup_list, 3);
	assert_string_equal(record->dup_list[0]->interface, "eth0");
	assert_int_equal(record->dup_list[0]->direction, 1);
	assert_string_equal(record->dup_list[1]->interface, "veth1");
	assert_int_equal(record->dup_list[1]->direction, 0);
	assert_string_equal(record->dup_list[2]->interface, "unknown");
	drop(record);
}

static void numbers_fit_what_readers_make_of_them(void **state)
{
	struct netobs_flow flow = golden_flow();
	Pbflow__Record *record;

	(void)state;
	flow.packets = 1ULL << 40;
	flow.l2_bytes = UINT64_MAX;
	flow.tcp_flags = UINT16_MAX;
	flow.dscp = UINT8_MAX;
	record = through(&flow);
	assert_int_equal(record->packets, UINT32_MAX);
	assert_true(record->bytes == UINT64_MAX);
	assert_in_range(record->flags, 0, UINT16_MAX);
	assert_in_range(record->network->dscp, 0, UINT8_MAX);
	drop(record);
}

/* What NetObserv's agent has for the same packets, where that can be known. */
static void flags_are_those_of_netobserv(void **state)
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

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netobs_flow flow = golden_flow();
		Pbflow__Record *record;

		flow.tcp_flags = cases[i].seen;
		flow.tcp_combined = cases[i].combined;
		flow.packets = cases[i].packets;
		record = through(&flow);
		assert_int_equal(record->flags, cases[i].expected);
		assert_int_equal(record->tcp_flags, cases[i].seen);
		drop(record);
	}
}

static void bytes_are_those_of_frames(void **state)
{
	struct netobs_flow flow = golden_flow();
	Pbflow__Record *record = through(&flow);

	(void)state;
	assert_int_equal(record->bytes, 1234567);
	assert_int_equal(record->l3_bytes, 1220749);
	drop(record);
	/* A tunnel device has no frames. */
	flow.has &= ~(uint64_t)NETOBS_HAS_MAC;
	record = through(&flow);
	assert_int_equal(record->bytes, 1220749);
	assert_int_equal(record->l3_bytes, 1220749);
	drop(record);
}

/* ---- Our own fields ---------------------------------------------------------------- */

static void rest_of_the_record_is_in_own_fields(void **state)
{
	static const struct netobs_point point = { .ifindex = 7,
						   .netns_inode = 4026531840,
						   .name = "eth0" };
	struct netobs_flow flow = golden_flow();
	uint8_t expected[512], bytes[PBFLOW_RECORD_MAX];
	size_t len = from_hex(own_golden, expected);
	Pbflow__Record *record;

	(void)state;
	flow.points = &point;
	flow.has |= NETOBS_HAS_VLAN | NETOBS_HAS_OUTER_VLAN | NETOBS_HAS_TUNNEL |
		    NETOBS_HAS_VNI | NETOBS_HAS_OUTER | NETOBS_HAS_OUTER_PORTS;
	flow.outer_vlan_id = 301;
	flow.ttl_min = 60;
	flow.ttl_max = 64;
	flow.ecn_seen = 5;
	flow.end_reason = NETOBS_END_ACTIVE;
	flow.tunnel = NETOBS_TUNNEL_VXLAN;
	memcpy(flow.outer_src, options.agent_ip, 16);
	inet_pton(AF_INET6, "2001:db8::2", flow.outer_dst);
	flow.outer_src_port = 40000;
	flow.outer_dst_port = 4789;
	assert_int_equal(pbflow_record(&flow, &options, bytes), len);
	assert_memory_equal(bytes, expected, len);
	record = unpack(bytes, len);
	assert_int_equal(record->dup_list[0]->if_index, 7);
	assert_int_equal(record->dup_list[0]->netns_inode, 4026531840);
	assert_int_equal(record->vlan_case, PBFLOW__RECORD__VLAN_VLAN_ID);
	assert_int_equal(record->vlan_id, 0); /* which is one, too */
	assert_int_equal(record->outer_vlan_id, 301);
	assert_int_equal(record->ttl_min, 60);
	assert_int_equal(record->ttl_max, 64);
	assert_int_equal(record->ecn_seen, 5);
	assert_int_equal(record->end_reason, 2);
	assert_int_equal(record->tunnel->kind, PBFLOW__TUNNEL__KIND__VXLAN);
	assert_int_equal(record->tunnel->id_case, PBFLOW__TUNNEL__ID_VNI);
	assert_int_equal(record->tunnel->src_addr->ipv4, 0x0a010203);
	assert_memory_equal(record->tunnel->dst_addr->ipv6.data, flow.outer_dst,
			    16);
	assert_int_equal(record->tunnel->src_port, 40000);
	assert_int_equal(record->tunnel->dst_port, 4789);
	drop(record);

	flow.has = 0;
	record = through(&flow);
	assert_int_equal(record->vlan_case, PBFLOW__RECORD__VLAN__NOT_SET);
	assert_null(record->tunnel);
	assert_int_equal(record->tcp_flags, 0);
	drop(record);
}

static void sampling_is_told_where_there_is_some(void **state)
{
	static const struct {
		uint32_t rate, expected;
	} cases[] = { { 0, 0 }, { 1, 0 }, { 2, 2 }, { UINT32_MAX, UINT32_MAX } };
	const struct netobs_flow flow = golden_flow();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct pbflow_options sampled = { .sampling =
								cases[i].rate };
		uint8_t buf[PBFLOW_RECORD_MAX];
		Pbflow__Record *record =
			unpack(buf, pbflow_record(&flow, &sampled, buf));

		assert_int_equal(record->sampling, cases[i].expected);
		assert_null(record->agent_ip); /* nobody knows it */
		drop(record);
	}
}

static void nanoseconds_count_forward(void **state)
{
	struct netobs_flow flow = golden_flow();
	Pbflow__Record *record;

	(void)state;
	flow.start_ns = -1;
	flow.end_ns = 0;
	record = through(&flow);
	assert_int_equal(record->time_flow_start->seconds, -1);
	assert_int_equal(record->time_flow_start->nanos, 999999999);
	assert_int_equal(record->time_flow_end->seconds, 0);
	drop(record);
}

static void optional_fields_need_their_bits(void **state)
{
	struct netobs_flow flow = golden_flow();
	Pbflow__Record *record;

	(void)state;
	flow.has = 0;
	flow.icmp_type = flow.icmp_code = 9;
	record = through(&flow);
	assert_int_equal(record->transport->src_port, 0);
	assert_int_equal(record->flags, 0);
	assert_int_equal(record->icmp_type, 0);
	assert_int_equal(record->data_link->src_mac, 0);
	drop(record);
	flow.has = NETOBS_HAS_ICMP;
	record = through(&flow);
	assert_int_equal(record->icmp_type, 9);
	assert_int_equal(record->icmp_code, 9);
	drop(record);
}

/* ---- Options --------------------------------------------------------------------- */

static int read_options(const char *text, struct pbflow_options *ret_options)
{
	static const struct log log;
	const struct sink_host host = { .log = &log, .sampling = 50 };
	struct spec spec;
	int err;

	assert_int_equal(spec_parse(&spec, text, &log), 0);
	pbflow_read_options(&spec, &host, ret_options);
	err = spec_finish(&spec);
	spec_free(&spec);
	return err;
}

static void agent_address_is_an_option(void **state)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 192, 0, 2, 9 };
	struct pbflow_options read;
	uint8_t v6[16];

	(void)state;
	inet_pton(AF_INET6, "2001:db8::9", v6);
	assert_int_equal(read_options("x?agent_ip=192.0.2.9", &read), 0);
	assert_memory_equal(read.agent_ip, v4, 16);
	assert_int_equal(read.sampling, 50);
	assert_int_equal(read_options("x?agent_ip=2001:db8::9", &read), 0);
	assert_memory_equal(read.agent_ip, v6, 16);
	assert_int_equal(read_options("x?agent_ip=eth0", &read), -EINVAL);
	assert_int_equal(read_options("x?agent_ip=", &read), -EINVAL);
	assert_int_equal(read_options("x", &read), 0);
}

static void expect_agent(const char *address)
{
	char text[INET6_ADDRSTRLEN];
	struct pbflow_options read;
	bool is_v4 = !strchr(address, ':');

	assert_int_equal(read_options("x", &read), 0);
	inet_ntop(is_v4 ? AF_INET : AF_INET6, read.agent_ip + (is_v4 ? 12 : 0),
		  text, sizeof(text));
	assert_string_equal(text, address);
}

/* The first interface is not the one that other hosts know this one by. */
static void agent_address_is_of_the_default_route(void **state)
{
	struct lab lab;

	(void)state;
	lab_enter(&lab);
	lab_run("ip link add m0 type veth peer name m1");
	lab_run("ip link add u0 type veth peer name u1");
	lab_run("ip address add 10.71.1.1/24 dev m0");
	lab_run("ip address add 10.72.2.2/24 dev u0");
	lab_run("ip address add 2001:db8:71::1/64 dev m0 nodad");
	lab_run("ip address add 2001:db8:72::2/64 dev u0 nodad");
	for (const char *name = "m0\0m1\0u0\0u1\0"; *name; name += 3)
		lab_run("ip link set %s up", name);
	expect_agent("10.71.1.1"); /* as there is no route */
	lab_run("ip -6 route add default via 2001:db8:72::1 dev u0");
	expect_agent("2001:db8:72::2");
	lab_run("ip route add default via 10.72.2.1 dev u0");
	expect_agent("10.72.2.2");
	lab_run("ip route change default via 10.71.1.9 dev m0");
	expect_agent("10.71.1.1");
	lab_leave(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schema_encodes_golden_record),
		cmocka_unit_test(flow_encodes_as_golden_record),
		cmocka_unit_test(entry_is_a_record_among_records),
		cmocka_unit_test(largest_record_fits),
		cmocka_unit_test(names_that_are_not_utf8_are_repaired),
		cmocka_unit_test(needed_messages_are_always_there),
		cmocka_unit_test(ipv6_has_16_bytes),
		cmocka_unit_test(ipv4_is_a_number),
		cmocka_unit_test(interfaces_are_in_dup_list_alone),
		cmocka_unit_test(numbers_fit_what_readers_make_of_them),
		cmocka_unit_test(flags_are_those_of_netobserv),
		cmocka_unit_test(bytes_are_those_of_frames),
		cmocka_unit_test(rest_of_the_record_is_in_own_fields),
		cmocka_unit_test(sampling_is_told_where_there_is_some),
		cmocka_unit_test(nanoseconds_count_forward),
		cmocka_unit_test(optional_fields_need_their_bits),
		cmocka_unit_test(agent_address_is_an_option),
		cmocka_unit_test(agent_address_is_of_the_default_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
