/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What baseline.bpf.c sends to baseline.c; fixed-size types come first. */
#ifndef NETOBS_BENCH_BASELINE_H
#define NETOBS_BENCH_BASELINE_H

/* Addresses and ports as they are in the packet. */
struct packet_tuple {
	__u32 src;
	__u32 dst;
	__u16 src_port;
	__u16 dst_port;
	__u32 proto;
};

/* One packet. */
struct packet_sample {
	struct packet_tuple tuple;
	__u64 time_ns;
	__u32 packets; /* more than one where GSO will cut a buffer */
	__u32 bytes;
};

#endif
