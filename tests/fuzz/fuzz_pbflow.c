// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Any record through protobuf and back. The input is a flow, the options, and a
 * byte for each of the points it was seen at: direction and length of the name. The same
 * bytes are a session, and an alert. Where it ends early, the rest is zero.
 */
#include "lib_fuzz.h"
#include "flow.pb-c.h"
#include "netobs.pb-c.h"

#include <arpa/inet.h>
#include <net/ethernet.h>

#include "record/any.h"
#include "sinks/pbflow/pbflow.h"

static const char longest[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

static void make_points(struct netobs_flow *flow, struct netobs_point *points,
			const uint8_t *data, size_t size)
{
	flow->n_points = (uint32_t)min_u64(size, PACK_POINTS_MAX);
	flow->points = points;
	for (size_t i = 0; i < flow->n_points; i++)
		points[i] = (struct netobs_point){
			.direction = data[i] & 3,
			.name = data[i] & 4 ? longest + (data[i] >> 3) : NULL,
		};
}

static uint64_t number_of_mac(const uint8_t mac[6])
{
	uint64_t number = 0;

	for (int i = 0; i < 6; i++)
		number = number << 8 | mac[i];
	return number;
}

static int64_t ns_of(const Pbflow__Timestamp *time)
{
	check(time->nanos >= 0 && time->nanos < NSEC_PER_SEC);
	return (int64_t)((uint64_t)time->seconds * NSEC_PER_SEC +
			 (uint64_t)time->nanos);
}

static void check_ip(const Pbflow__IP *ip, const uint8_t expected[16], bool is_v4)
{
	check((ip->ip_family_case == PBFLOW__IP__IP_FAMILY_IPV4) == is_v4);
	if (is_v4) {
		uint32_t number = htonl(ip->ipv4);

		check(!memcmp(&number, expected + 12, 4));
	} else {
		check(ip->ipv6.len == 16);
		check(!memcmp(ip->ipv6.data, expected, 16));
	}
}

static void check_points(const Pbflow__Record *record,
			 const struct netobs_flow *flow)
{
	check(record->n_dup_list == max_u64(flow->n_points, 1));
	check(record->dup_list[0]->direction == record->direction);
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct netobs_point *point = &flow->points[i];

		check(record->dup_list[i]->direction ==
		      (point->direction == NETOBS_EGRESS));
		check(!strcmp(record->dup_list[i]->interface,
			      point->name ?: "unknown"));
	}
}

static void check_same(const Pbflow__Record *record,
		       const struct netobs_flow *flow)
{
	bool is_v4 = flow->ethertype != ETHERTYPE_IPV6;
	bool has_ports = flow->has & NETOBS_HAS_PORTS;
	bool has_mac = flow->has & NETOBS_HAS_MAC;
	bool has_icmp = flow->has & NETOBS_HAS_ICMP;
	bool is_sampled = flow->has & NETOBS_HAS_SAMPLING;

	check(record->eth_protocol == flow->ethertype);
	check(ns_of(record->time_flow_start) == flow->start_ns);
	check(ns_of(record->time_flow_end) == flow->end_ns);
	check(record->bytes == (has_mac ? flow->l2_bytes : flow->bytes));
	check(record->l3_bytes == flow->bytes);
	check(record->packets == min_u64(flow->packets, UINT32_MAX));
	check(record->tcp_flags ==
	      (flow->has & NETOBS_HAS_TCP ? flow->tcp_flags : 0));
	check(!(record->flags & 0xff & ~flow->tcp_flags));
	check(record->ttl_min == flow->ttl_min &&
	      record->ttl_max == flow->ttl_max);
	check((record->vlan_case != 0) == !!(flow->has & NETOBS_HAS_VLAN));
	check((record->tunnel != NULL) == !!(flow->has & NETOBS_HAS_TUNNEL));
	check_ip(record->network->src_addr, flow->src, is_v4);
	check_ip(record->network->dst_addr, flow->dst, is_v4);
	check(record->network->dscp == flow->dscp);
	check(record->transport->protocol == flow->proto);
	check(record->transport->src_port == (has_ports ? flow->src_port : 0));
	check(record->transport->dst_port == (has_ports ? flow->dst_port : 0));
	check(record->icmp_type == (has_icmp ? flow->icmp_type : 0));
	check(record->icmp_code == (has_icmp ? flow->icmp_code : 0));
	check(record->data_link->src_mac ==
	      (has_mac ? number_of_mac(flow->src_mac) : 0));
	check(record->sampling == (is_sampled ? flow->sampling : 0));
	check(record->time_flow_rtt != NULL);
	check_points(record, flow);
}

static void check_entry(const struct netobs_flow *flow,
			const struct pbflow_options *options,
			const uint8_t *record, size_t len)
{
	static uint8_t entries[2 * PBFLOW_ENTRY_MAX];
	size_t one = pbflow_entry(flow, options, entries);
	size_t two = pbflow_entry(flow, options, entries + one);
	Pbflow__Records *records =
		pbflow__records__unpack(NULL, one + two, entries);

	check(one == two && records && records->n_entries == 2);
	check(one >= len && !memcmp(entries + one - len, record, len));
	/* Nothing is written twice, no default, and nothing that flow.proto lacks. */
	check(pbflow__record__get_packed_size(records->entries[1]) == len);
	check(!records->entries[1]->base.n_unknown_fields);
	pbflow__records__free_unpacked(records, NULL);
}

/* Of any values: the unit test compares them. */
static void test_other(enum netobs_record_type type, const uint8_t *data,
		       size_t size)
{
	static uint8_t buf[2 * PBNETOBS_ENTRY_MAX];
	struct pbflow_options options;
	union any_record any;
	Netobs__Records *records;
	size_t one, two;

	fuzz_take(&data, &size, &options, sizeof(options));
	fuzz_take(&data, &size, &any, sizeof(any));
	any.record.type = type;
	one = pbnetobs_entry(&any.record, &options, buf);
	check(one <= PBNETOBS_ENTRY_MAX);
	two = pbnetobs_entry(&any.record, &options, buf + one);
	records = netobs__records__unpack(NULL, one + two, buf);
	check(one == two && records && records->n_entries == 2);
	check(netobs__records__get_packed_size(records) == one + two);
	check(!records->entries[0]->base.n_unknown_fields);
	netobs__records__free_unpacked(records, NULL);
}

static void test_flow(const uint8_t *data, size_t size)
{
	static uint8_t buf[PBFLOW_RECORD_MAX];
	struct netobs_point points[PACK_POINTS_MAX];
	struct pbflow_options options;
	struct netobs_process processes[2];
	struct netobs_flow flow;
	Pbflow__Record *record;
	size_t len;

	fuzz_take(&data, &size, &flow, sizeof(flow));
	fuzz_take(&data, &size, &options, sizeof(options));
	fuzz_take(&data, &size, processes, sizeof(processes));
	flow.src_process = flow.dscp & 1 ? &processes[0] : NULL;
	flow.dst_process = flow.dscp & 2 ? &processes[1] : NULL;
	make_points(&flow, points, data, size);

	len = pbflow_record(&flow, &options, buf);
	check(len <= sizeof(buf));
	record = pbflow__record__unpack(NULL, len, buf);
	check(record != NULL);
	check_same(record, &flow);
	pbflow__record__free_unpacked(record, NULL);
	check_entry(&flow, &options, buf, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	test_flow(data, size);
	test_other(NETOBS_RECORD_SESSION, data, size);
	test_other(NETOBS_RECORD_ALERT, data, size);
	return 0;
}
