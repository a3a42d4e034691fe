// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records as protobuf: the same bytes as NetObserv's and Python's. */
#include "lib_record.h"

#include <arpa/inet.h>

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

static size_t from_hex(const char *text, uint8_t *bytes)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(sscanf(text + 2 * i, "%2hhx", &bytes[i]), 1);
	return n;
}

static Pbflow__Record *unpack_golden(void)
{
	uint8_t bytes[256];

	return record_unpack(bytes, from_hex(golden, bytes));
}

/* ---- The same bytes -------------------------------------------------------------- */

/* Each field of it, by name and value: flow.proto gives them the right numbers. */
TEST(schema_encodes_golden_record)
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
	Pbflow__Record *record = record_unpack(bytes, len);

	for (size_t i = 0; i < record->n_dup_list; i++)
		record->dup_list[i]->if_index =
			record->dup_list[i]->netns_inode = 0;
	record->l3_bytes = record->tcp_flags = 0;
	record->ttl_min = record->ttl_max = 0;
	record->ecn_seen = record->end_reason = 0;
	len = pbflow__record__pack(record, bytes);
	record_free(record);
	return len;
}

TEST(flow_encodes_as_golden_record)
{
	struct netobs_flow flow = record_flow();
	uint8_t expected[256], bytes[PBFLOW_RECORD_MAX];
	Pbflow__Record *record = unpack_golden();
	size_t len;

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
	assert_int_equal(
		strip_own(bytes, pbflow_record(&flow, &record_options, bytes)),
		len);
	assert_memory_equal(bytes, expected, len);
	record_free(record);
}

/* ---- Our own fields ---------------------------------------------------------------- */

TEST(rest_of_the_record_is_in_own_fields)
{
	static const struct netobs_point point = { .ifindex = 7,
						   .netns_inode = 4026531840,
						   .name = "eth0" };
	struct netobs_flow flow = record_flow();
	uint8_t expected[512], bytes[PBFLOW_RECORD_MAX];
	size_t len = from_hex(own_golden, expected);
	Pbflow__Record *record;

	flow.points = &point;
	flow.has |= NETOBS_HAS_VLAN | NETOBS_HAS_OUTER_VLAN | NETOBS_HAS_TUNNEL |
		    NETOBS_HAS_VNI | NETOBS_HAS_OUTER | NETOBS_HAS_OUTER_PORTS;
	flow.outer_vlan_id = 301;
	flow.ttl_min = 60;
	flow.ttl_max = 64;
	flow.ecn_seen = 5;
	flow.end_reason = NETOBS_END_ACTIVE;
	flow.tunnel = NETOBS_TUNNEL_VXLAN;
	memcpy(flow.outer_src, record_options.agent_ip, 16);
	inet_pton(AF_INET6, "2001:db8::2", flow.outer_dst);
	flow.outer_src_port = 40000;
	flow.outer_dst_port = 4789;
	assert_int_equal(
		record_sort(bytes, pbflow_record(&flow, &record_options, bytes)),
		len);
	assert_memory_equal(bytes, expected, len);
	record = record_unpack(bytes, len);
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
	record_free(record);

	flow.has = 0;
	record = record_through(&flow);
	assert_int_equal(record->vlan_case, PBFLOW__RECORD__VLAN__NOT_SET);
	assert_null(record->tunnel);
	assert_int_equal(record->tcp_flags, 0);
	record_free(record);
}
