/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Knobs: user space sets them before loading, the verifier sees constants. */
#ifndef NETOBS_BPF_CONFIG_H
#define NETOBS_BPF_CONFIG_H

#include "bpf/connection.h"
#include "bpf/store/hash.h"
#include "bpf/judge.h"
#include "bpf/nat.h"

const volatile __u16 config_netns = 0; /* index, for the key */
const volatile __u8 config_clock = CLOCK_HOST;
const volatile __u8 config_has_rules = 0;  /* which count */
const volatile __u8 config_is_sampled = 0; /* a rate but 0 is used */
const volatile __u32 config_judgement = JUDGED_ACCEPT; /* without a filter */
const volatile struct rate config_rates[RATES];
const volatile __u32 config_lanes = 1;	    /* of each CPU, see types.h */
const volatile __u32 config_cpus = 1;	    /* possible CPUs */
const volatile __u32 config_l1_buckets = 1; /* per CPU and generation */
const volatile __u32 config_log_slots = 0; /* per CPU, a power of two; 0: no log */
const volatile __u32 config_overflow_part = 1; /* pages; OVERFLOW_PARTS per CPU */
const volatile __u8 config_rtt =
	0; /* connections are measured; 0: their maps have one entry */
const volatile __u8 config_alerts = 0; /* there may be rules about connections */
const volatile __u8 config_has_nat = 0; /* translations are reported */
const volatile struct nat_layout config_nat;
const volatile __u8 config_has_queues = 0; /* leaving.bpf.c runs, too */
const volatile __u32 config_conn_buckets = 1;
const volatile __u32 config_conn_idle =
	60; /* seconds; then it may give its place to another */
const volatile struct hash_secret config_secret;

/*
 * Programs for one configuration, see flows_default.bpf.c: the compiler sees constants, and user space
 * sets the same values. What it leaves out costs a packet nothing; what only the verifier leaves
 * out was in registers and on the stack before.
 */
#ifdef CONFIG_RTT
#define config_rtt CONFIG_RTT
#define config_link LINK_ETHERNET
#define config_clock CLOCK_HOST
#define config_lanes 1
#define config_has_rules false
#define config_is_sampled false
#define config_alerts false
#ifdef CONFIG_NAT
#define config_has_nat true
#else
#define config_has_nat false
#endif
#endif

#endif
