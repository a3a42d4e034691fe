/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_inject.h"

#include "lib_test.h"
#include "packet.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <sched.h>

enum { ETHER_LEN = 14, IP_SRC = ETHER_LEN + 12 };

static void inject(const struct programs *programs, const uint8_t *frame,
		   uint32_t len, uint32_t repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame,
		    .data_size_in = len, .repeat = repeat);

	assert_int_equal(bpf_prog_test_run_opts(programs->fds[0], &run), 0);
}

uint32_t inject_frame(uint32_t flow, uint8_t frame[64])
{
	static const struct layer layers[] = {
		ETH, IP4, UDP, DATA(10), { LAYER_END, 0, 0, 0 }
	};
	uint32_t src = htonl(flow);
	struct packet_bytes packet;

	packet_build(layers, &packet);
	assert_int_equal(packet.len, ETHER_LEN + INJECT_BYTES);
	memcpy(packet.bytes + IP_SRC, &src, sizeof(src));
	memcpy(frame, packet.bytes, packet.len);
	return packet.len;
}

void inject_flow(const struct programs *programs, uint32_t flow, uint32_t packets)
{
	uint8_t frame[64];
	uint32_t len = inject_frame(flow, frame);

	inject(programs, frame, len, packets);
}

void inject_arp(const struct programs *programs)
{
	static const uint8_t frame[60] = { [12] = 0x08, 0x06 };

	inject(programs, frame, sizeof(frame), 1);
}

void inject_short(const struct programs *programs)
{
	uint8_t frame[64];

	inject_frame(1, frame);
	inject(programs, frame, 36, 1); /* two bytes of the UDP header */
}

void inject_pin(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}
