/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A run of a program: the state of its CPU, the generation it writes to, the time, and
 * counters by reason.
 */
#ifndef NETOBS_BPF_STORE_RUN_H
#define NETOBS_BPF_STORE_RUN_H

#include "bpf/config.h"
#include "bpf/maps.h"
#include "bpf/parse/wire.h"
#include "bypass.h"
#include "hash.h"

enum run_due {
	DUE_NOTICE = 1 << 0, /* wake the reader of the log */
	DUE_OVERFLOW =
		1 << 1, /* keep the entry in the scratch: the log had no room for it */
};

/* The state of a program run. */
struct run {
	struct cpu_state *cpu;
	struct counters *counters; /* of the generation */
	struct scratch *scratch;
	__u32 cpu_id;
	__u32 generation;
	__u64 now;		  /* ns, by the clock that config_clock names */
	struct flow_entry *known; /* entry in L1 that the packet was added to; or NULL */
	bool is_plain;		  /* the packet is in no tunnel */
	__u32 due; /* enum run_due, or-ed: what the program does at its end */
};

static __always_inline void run_exit(struct run *run)
{
	WRITE_ONCE(run->cpu->exited, run->cpu->exited + 1);
	if (config_lanes > 1)
		__sync_fetch_and_add(&run->cpu->busy, -1);
}

/* Several programs may run this at the same time. */
static __always_inline void count_unclaimed(const struct __sk_buff *skb)
{
	__u32 first = 0;
	struct count *count = bpf_map_lookup_elem(&unclaimed, &first);
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &first);

	if (!count || !cpu || READ_ONCE(cpu->is_paused))
		return;
	__sync_fetch_and_add(&count->packets, skb->gso_segs ?: 1);
	__sync_fetch_and_add(&count->bytes, skb->len);
}

/*
 * COMPAT(<5.12): there is no compare-and-exchange, nor an addition that returns something. A run
 * adds 1; if the result is 1, it has the lane. Of two runs at the same moment, both may go on to
 * the next lane, but never both stay.
 */
static __always_inline bool claim(struct cpu_state *cpu)
{
	__sync_fetch_and_add(&cpu->busy, 1);
	if (READ_ONCE(cpu->busy) == 1)
		return true;
	__sync_fetch_and_add(&cpu->busy, -1);
	return false;
}

/* The key is a copy: a struct run whose address a helper gets is on the stack as a whole. */
static __always_inline struct cpu_state *cpu_state_at(__u32 cpu_id)
{
	return bpf_map_lookup_elem(&cpu_states, &cpu_id);
}

/* NULL: all lanes of this CPU are in use. */
static __always_inline struct cpu_state *claim_state(struct run *run)
{
	__u32 lanes = config_lanes, first = bpf_get_smp_processor_id();

	run->cpu_id = first;
	if (lanes == 1)
		return cpu_state_at(run->cpu_id);
	for (__u32 lane = 0; lane < LANES_MAX && lane < lanes; lane++) {
		__u32 cpu_id = first * lanes + lane;
		struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &cpu_id);

		/* The value that the helper left, so that the verifier checks one case for all states of a CPU. */
		run->cpu_id = cpu_id;
		if (cpu && claim(cpu))
			return cpu;
	}
	return NULL;
}

/* Set the members that follow from @run->cpu and @run->cpu_id. */
static __always_inline void run_begin(struct run *run, __u32 generation)
{
	run->scratch = (struct scratch *)run->cpu->scratch;
	run->generation = generation;
	run->counters = &run->cpu->counters[generation];
	run->known = NULL;
	run->is_plain = false;
	run->due = 0;
}

/*
 * Enter before reading the generation and the switch: user space flips it, waits,
 * and takes what entered by then for the last that may still write to the old one.
 * So once a generation is at rest after a pause, no program counts any more.
 */
static __always_inline bool run_enter(struct run *run)
{
	struct cpu_state *cpu = claim_state(run);

	run->cpu = cpu;
	if (!cpu)
		return false;
	WRITE_ONCE(cpu->entered, cpu->entered + 1);
	if (READ_ONCE(cpu->is_paused)) {
		run_exit(run);
		return false;
	}
	run_begin(run, READ_ONCE(cpu->generation) & (GENERATIONS - 1));
	return true;
}

/* Find the run of this program, which has entered, in a called function. */
static __always_inline bool run_find(struct run *run, __u32 cpu_id,
				     __u32 generation)
{
	run->cpu_id = cpu_id;
	run->cpu = cpu_state_at(cpu_id);
	if (!run->cpu)
		return false;
	run_begin(run, generation & (GENERATIONS - 1));
	return true;
}

static __always_inline void count(struct count *count, __u64 packets, __u64 bytes)
{
	count->packets += packets;
	count->bytes += bytes;
}

static __always_inline void count_unparsed(struct run *run,
					   enum unparsed_reason reason,
					   const struct wire_size *size)
{
	/* The compiler knows all reasons; the verifier has to see the check. */
	asm volatile("" : "+r"(reason));
	if (reason < UNPARSED_MAX)
		count(&run->counters->unparsed[reason], size->packets,
		      size->bytes);
}

/* ---- Time ---------------------------------------------------------------------- */

/*
 * Times are in ns of CLOCK_BOOTTIME. Reading the clock costs more than all the rest of a packet of
 * a known flow, so it is read once per timer tick and CPU. An exact time is even; one that is odd is
 * that of the last reading, so the packet came up to a tick later. Times of files are as they are there.
 */

/* Replay: skb->cb of BPF_PROG_TEST_RUN carries the time from the file. */
static __always_inline __u64 packet_time(const struct __sk_buff *skb)
{
	return skb->cb[0] | (__u64)skb->cb[1] << 32;
}

/* @return the exact time; read back, as the verifier would follow what it knows of the lowest bit */
static __always_inline __u64 clock_read(struct cpu_state *cpu)
{
	WRITE_ONCE(cpu->tick_ns, bpf_ktime_get_boot_ns() | 1);
	return READ_ONCE(cpu->tick_ns) - 1;
}

static __always_inline __u64 clock_now(struct cpu_state *cpu,
				       const struct __sk_buff *skb)
{
	__u64 tick;

	if (config_clock == CLOCK_PACKET)
		return packet_time(skb);
	tick = bpf_jiffies64();
	if (tick != cpu->tick) {
		bypass_tick(cpu, config_log_slots);
		cpu->tick = tick;
		return clock_read(cpu);
	}
	return cpu->tick_ns;
}

/* Read the time of a new flow. The coarse clock goes on from it, so as not to run backwards. */
static __always_inline __u64 clock_exact(struct cpu_state *cpu, __u64 now)
{
	return config_clock == CLOCK_PACKET ? now : clock_read(cpu);
}

#endif
