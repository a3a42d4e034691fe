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

/* The numbers of our own fields, which test_fields.c takes from the catalogue, stay what they are. */
TEST(rest_of_the_record_is_in_own_fields)
{
	static const struct netobs_point point = { .ifindex = 7,
						   .netns_inode = 4026531840,
						   .name = "eth0" };
	struct netobs_flow flow = record_flow();
	uint8_t expected[512], bytes[512];
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
	record = record_through(&flow);
	assert_int_equal(pbflow__record__get_packed_size(record), len);
	pbflow__record__pack(record, bytes); /* in the order of their numbers */
	assert_memory_equal(bytes, expected, len);
	record_free(record);
}
