/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Translation when a socket connects: programs of others at control groups may replace the address
 * that a process asks for, before there is a packet. Structs that the programs of netobs and user
 * space share.
 */
#ifndef NETOBS_BPF_CONNECT_H
#define NETOBS_BPF_CONNECT_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

enum connect_kind {
	CONNECT_BEGIN, /* the socket's remote end differs from the one asked for */
	CONNECT_DIRECT, /* a socket has the remote end that it asked for; another socket with the tuple had not */
	CONNECT_END, /* the socket is gone, connects again, or has too many translations */
	/*
	 * Datagrams of a socket that is not connected go to another end than was asked for, or
	 * again to that end. Local address 0: unknown, but no other socket has the port.
	 */
	CONNECT_SENT,
};

enum {
	CONNECT_RING_BYTES = 1 << 20,
	CONNECT_RECENT_MAX = 16384, /* translated tuples that are remembered */
	CONNECT_DIRECT_SLOTS = 1 << 14, /* tuples not translated, by hash */
	CONNECT_AIMS_MAX =
		16384, /* threads that connect sockets of UDP, or send datagrams, at a time */
};

/* A socket's tuple, as its packets have it. */
struct connect_tuple {
	__u8 local[16], remote[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u16 local_port, remote_port;
	__u32 netns; /* inode */
	__u8 protocol;
	__u8 reserved[3];
};

_Static_assert(sizeof(struct connect_tuple) == 44, "no padding: it is a key");

struct connect_event {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 cookie;  /* of the socket */
	struct connect_tuple tuple;
	__u8 asked[16];
	__u16 asked_port;
	__u8 kind; /* enum connect_kind */
	__u8 is_another; /* just before, another socket had the tuple, not translated */
	__u32 pid; /* of a process in that namespace, mostly the one that connects */
	__u32 reserved2;
};

_Static_assert(sizeof(struct connect_event) == 88, "no padding");

/* Counters over all CPUs. */
struct connect_counters {
	__u64 reported;
	__u64 lost;   /* the ring was full */
	__u64 udp;    /* sockets of UDP that have connected */
	__u64 missed; /* UDP calls whose address is unknown */
};

#endif
