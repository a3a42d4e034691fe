/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Structs that the capture programs and user space share. */
#ifndef NETOBS_BPF_CAPTURE_H
#define NETOBS_BPF_CAPTURE_H

#include "types.h"

enum {
	CAPTURE_SNAP_MAX = 262144, /* as in tcpdump(8) */
	CAPTURE_RINGS_MAX = 16,	   /* ring buffers of a capture */
};

/* A packet in a ring buffer, with `captured` bytes of the frame behind it. */
struct capture_packet {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u32 ifindex;
	__u32 length; /* of the frame, without a tag that is beside it */
	__u32 captured;
	__u16 netns;	/* index given by user space */
	__u16 vlan_tci; /* tag that the kernel keeps beside the frame */
	__u16 vlan_type; /* ethertype of that tag, network byte order; 0: no tag */
	__u8 direction; /* enum direction */
	__u8 link;	/* enum link_kind */
	__u8 reserved[4];
};

struct capture_interface_key {
	__u32 ifindex;
	__u32 netns;
};

/* Packets of one interface; matched = limited + lost + packets in ring buffers. */
struct capture_counters {
	__u64 matched;
	__u64 limited; /* beyond the rate */
	__u64 lost;    /* no room in a ring buffer */
};

/* Packets that went into ring buffers since the beginning of the window. */
struct capture_window {
	__u64 start_ns;
	__u64 packets;
	__u64 is_closed; /* the capture is stopping: packets are not even counted */
};

#endif
