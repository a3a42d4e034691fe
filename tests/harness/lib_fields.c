// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_fields.h"

#include <string.h>

static const struct netobs_point point = {
	.ifindex = 7,
	.netns_inode = 4026531840,
	.direction = NETOBS_INGRESS,
	.name = "eth0",
};

static const struct netobs_flow all_fields = {
	.sz = sizeof(struct netobs_flow),
	.start_ns = 1700000000123456789,
	.end_ns = 1700000005987654321,
	.packets = 12,
	.bytes = 900,
	.l2_bytes = 1068,
	.src = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
	.dst = { [10] = 0xff, 0xff, 198, 51, 100, 2 },
	.src_port = 40000,
	.dst_port = 4430,
	.ethertype = 0x0800,
	.tcp_flags = 0x13,
	.tcp_combined = NETOBS_TCP_SYN_ACK,
	.proto = 6,
	.icmp_type = 201, /* without a name */
	.icmp_code = 3,
	.dscp = 46,
	.ecn_seen = 4,
	.flow_label = 0xbeef5,
	.ttl_min = 60,
	.ttl_max = 64,
	.end_reason = NETOBS_END_ACTIVE,
	.src_mac = { 2, 0, 0, 0, 0, 1 },
	.dst_mac = { 2, 0, 0, 0, 0, 2 },
	.vlan_id = 77,
	.outer_vlan_id = 88,
	.outer_src = { [10] = 0xff, 0xff, 203, 0, 113, 1 },
	.outer_dst = { [10] = 0xff, 0xff, 203, 0, 113, 2 },
	.outer_src_port = 50000,
	.outer_dst_port = 4789,
	.vni = 5000,
	.tunnel = NETOBS_TUNNEL_GENEVE,
	.rtt_ns = 12345678,
	.rtt_min_ns = 11000000,
	.rtt_max_ns = 5123456789,
	.rtt_samples = 31,
	.handshake_rtt_ns = 11500000,
	.path_rtt_ns = 11400000,
	.response_time_ns = 62345678,
	.response_time_min_ns = 61000000,
	.response_time_max_ns = 72000000,
	.app_latency_ns = 51234567,
	.app_latency_min_ns = 50000000,
	.app_latency_max_ns = 61000000,
	.app_responses = 17,
	.retransmits = 5,
	.retransmitted_bytes = 7300,
	.out_of_order = 3,
	.late_unknown = 4,
	.duplicate_acks = 9,
	.zero_windows = 2,
	.xlat_src = { [10] = 0xff, 0xff, 203, 0, 113, 7 },
	.xlat_dst = { [10] = 0xff, 0xff, 203, 0, 113, 8 },
	.orig_src = { [10] = 0xff, 0xff, 10, 0, 0, 3 },
	.orig_dst = { [10] = 0xff, 0xff, 10, 0, 0, 4 },
	.xlat_src_port = 50001,
	.xlat_dst_port = 50002,
	.orig_src_port = 50003,
	.orig_dst_port = 50004,
	.zone_id = 21,
	.conversation_id = 0x0123456789abcdef,
	.drop_packets = 23,
	.drop_bytes = 4500,
	.drop_reason = 8,
	.drop_cause = "SKB_DROP_REASON_NETFILTER_DROP",
	.n_points = 1,
	.point_size = sizeof(point),
	.points = &point,
};

struct netobs_flow fields_flow(void)
{
	struct netobs_flow flow = all_fields;

	for (size_t i = 0; i < N_FIELDS; i++)
		flow.has |= fields[i].has;
	return flow;
}

void field_change(void *record, const struct field *field)
{
	uint8_t *bytes = (uint8_t *)record + field->offset;

	if (!strcmp(field->type, "time"))
		*(int64_t *)bytes += 3000000000; /* to be seen in seconds */
	else if (!strcmp(field->type, "name"))
		*(const char **)bytes = "eth1";
	else if (!strcmp(field->type, "text"))
		bytes[0] ^= 1;
	else if (!strcmp(field->type, "direction"))
		*bytes ^= NETOBS_INGRESS ^ NETOBS_EGRESS;
	else if (!strcmp(field->member, "ethertype"))
		*(uint16_t *)bytes = 0x86dd;
	else /* of an address the last byte, of a number the lowest */
		bytes[field->size > 8 ? field->size - 1 : 0] ^= 1;
}

struct netobs_process fields_process(void)
{
	return (struct netobs_process){
		.sz = sizeof(struct netobs_process),
		.pid = 4711,
		.uid = 1000,
		.cgroup_id = 123456789012,
		.command = "a command",
		.thread = "a thread",
		.long_name = "a command with a long name",
		.cgroup_path = "/system.slice/a.service",
		.container_id = "3f4c9a0b1d2e5f60718293a4b5c6d7e8"
				"f90a1b2c3d4e5f60718293a4b5c6d7e8",
		.pod_uid = "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f60",
		.unit = "a.service",
		.slice = "system.slice",
		.machine = "qemu-1-web",
		.container_name = "web",
		.container_image = "docker.io/library/nginx:1.25",
		.pod_name = "web-7d4b9c",
		.pod_namespace = "shop",
	};
}
