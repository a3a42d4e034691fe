/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time, in ns of CLOCK_BOOTTIME. Reading the clock costs more than all the rest
 * of a packet of a known flow, so it is read once per timer tick and CPU.
 */
#ifndef NETOBS_BPF_STORE_CLOCK_H
#define NETOBS_BPF_STORE_CLOCK_H

#include "bpf/config.h"
#include "counters.h"

/* Replay: skb->cb of BPF_PROG_TEST_RUN carries what the file says. */
static __always_inline __u64 packet_time(const struct __sk_buff *skb)
{
	return skb->cb[0] | (__u64)skb->cb[1] << 32;
}

static __always_inline __u64 tick_time(struct cpu_state *cpu)
{
	__u64 tick = bpf_jiffies64();

	if (tick != cpu->tick) {
		cpu->tick = tick;
		cpu->tick_ns = bpf_ktime_get_boot_ns();
	}
	return cpu->tick_ns;
}

static __always_inline __u64 clock_now(struct cpu_state *cpu,
				       const struct __sk_buff *skb)
{
	switch (config_clock) {
	case CLOCK_PACKET:
		return packet_time(skb);
	case CLOCK_PRECISE:
		return bpf_ktime_get_boot_ns();
	default:
		return tick_time(cpu);
	}
}

/* For a new flow. The rest of the tick goes on from here, not to run backwards. */
static __always_inline __u64 clock_exact(struct cpu_state *cpu, __u64 now)
{
	if (config_clock != CLOCK_COARSE)
		return now;
	cpu->tick_ns = bpf_ktime_get_boot_ns();
	return cpu->tick_ns;
}

#endif
