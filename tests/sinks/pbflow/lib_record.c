// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_record.h"

const struct pbflow_options record_options = {
	.agent_ip = { [10] = 0xff, 0xff, 10, 1, 2, 3 },
};

static const struct netobs_point eth0 = { .ifindex = 2, .name = "eth0" };

Pbflow__Record *record_unpack(const uint8_t *bytes, size_t len)
{
	Pbflow__Record *record = pbflow__record__unpack(NULL, len, bytes);

	assert_non_null(record);
	return record;
}

/* What of the golden record a flow has. */
struct netobs_flow record_flow(void)
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

Pbflow__Record *record_through(const struct netobs_flow *flow)
{
	static uint8_t buf[PBFLOW_RECORD_MAX];
	const size_t len = pbflow_record(flow, &record_options, buf);
	Pbflow__Record *record = record_unpack(buf, len);

	/* No default is written, and no field twice. */
	assert_int_equal(pbflow__record__get_packed_size(record), len);
	return record;
}

void record_free(Pbflow__Record *record)
{
	pbflow__record__free_unpacked(record, NULL);
}
