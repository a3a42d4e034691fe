/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flows that pass queues and uplinks: types that the programs of the tracer share with user space. */
#ifndef NETOBS_BPF_QUEUES_H
#define NETOBS_BPF_QUEUES_H

#include "bpf/nat.h"
#include "bpf/types.h"

enum {
	QUEUES = 32,	    /* that packets of traced connections wait in */
	QUEUE_BUCKETS = 64, /* of each */
	QUEUE_SHIFT = 24,   /* of the time of a bucket: 16.8 ms */
	UPLINKS = 4,	    /* interfaces whose arriving packets are counted */
	UPLINK_BUCKETS = 512, /* of each, on each CPU */
	UPLINK_SHIFT = 20,    /* 1.05 ms */
	QUEUE_SHARES = 16,    /* flows of a bucket */
	QUEUE_SENDERS = 4096, /* flows of all buckets */
	QUEUE_TRIES = 4,      /* places of a queue, or of a flow in a bucket */
	QUEUE_WAITERS = 64, /* directions of connections that are told apart */
};

/* A flow as at an interface. Later fragments have no ports. */
struct queue_flow {
	struct ip_addr src, dst;
	__u16 src_port, dst_port;
	__u8 proto;
	__u8 reserved[3];
};

_Static_assert(sizeof(struct queue_flow) == 40, "no padding: it is hashed");

/* Who sends a flow, as far as its first packet in a bucket shows. */
struct queue_sender {
	struct queue_flow flow;
	struct nat_tuple before; /* NAT of the interface's namespace; zeroes: there was none */
	__u64 socket; /* address of the socket that the packet had; 0: none */
};

struct queue_share {
	__u32 id; /* hash of the flow; 0: the place is free */
	__u32 bytes;
};

/* The flows that passed in a part of the time. Those that found no place count in bytes alone. */
struct queue_bucket {
	__u64 number; /* CLOCK_BOOTTIME >> QUEUE_SHIFT or UPLINK_SHIFT */
	__u64 bytes;
	__u64 waited_ns; /* of queues: while traced packets waited */
	struct queue_share shares[QUEUE_SHARES];
};

/*
 * Add a packet to the share of its flow. Of the places of the flow, take its own one, a free one, or that with the
 * fewest bytes, which then are in no share: flows with many bytes stay.
 *
 * @return whether the flow had a place
 */
static inline int queue_add_share(struct queue_bucket *bucket, __u32 id,
				  __u32 bytes)
{
	struct queue_share *least = 0;

	for (int i = 0; i < QUEUE_TRIES; i++) {
		struct queue_share *share =
			&bucket->shares[(id + i) & (QUEUE_SHARES - 1)];

		if (share->id == id) {
			share->bytes += bytes;
			return 1;
		}
		if (!least ||
		    (least->id && (!share->id || share->bytes < least->bytes)))
			least = share;
	}
	least->id = id;
	least->bytes = bytes;
	return 0;
}

/* A queueing discipline at the root of an interface, or of one of its queues. */
struct queue_state {
	__u64 id; /* of the discipline and its interface; 0: the place is free */
	__u64 used_ns; /* when the last traced packet came to it, CLOCK_BOOTTIME */
	__u64 mark_ns; /* until then, the time of waiting is counted */
	/*
	 * A bit for each direction of a connection, about: its last packet has come, and has not left. @last
	 * is that packet: the number behind its last byte, or for datagrams a part of an address.
	 */
	__u64 waiting;
	__u32 last[QUEUE_WAITERS];
	/* Left before it came: another CPU was faster. */
	__u32 left[QUEUE_WAITERS];
	__u32 ifindex;
	__u32 netns;
	char interface[16];
};

/* Set by user space. */
struct queue_uplink {
	__u32 ifindex; /* 0: the place is free */
	__u32 netns;
};

struct queue_uplinks {
	struct queue_uplink list[UPLINKS];
};

/* A socket of a process, as the iterator of sockets writes it. */
struct queue_owner {
	__u64 socket;		/* its address */
	struct queue_flow flow; /* that it sends; dst is zeroes if it is not connected */
	__u32 netns;
	__u32 pid;
	char command[16];
};

#endif
