/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tracer of connections: what its programs and user space share. */
#ifndef NETOBS_BPF_TRACE_H
#define NETOBS_BPF_TRACE_H

#include "bpf/types.h"

enum {
	TRACE_SLOTS_MIN =
		1 << 12, /* of connections, those that are not chosen yet as well */
	TRACE_FACES = 4, /* tuples of a connection, about: NAT gives it others */
	TRACE_CANDIDATE_EVENTS =
		16384, /* of a connection, until user space looks at it */
	TRACE_BOUND_EVENTS =
		256, /* of a connection, in layers that are not wanted: a few packets at several points */
	TRACE_PORTS = 1 << 16,
	TRACE_SCRATCHES =
		4, /* programs that run on a CPU, each interrupted by the next */
	TRACE_FRAGMENTS = 4096, /* datagrams whose fragments are on their way */
	TRACE_READERS = 4096,	/* sockets that have datagrams to be read */
	TRACE_REFUSED = 16384,	/* flows of datagrams that are not chosen */
};

/* As enum netobs_trace_point, and then those for user space alone. */
enum trace_point {
	TRACE_SEND,
	TRACE_SENT,
	TRACE_RETRANSMIT,
	TRACE_QUEUE,
	TRACE_ENQUEUE,
	TRACE_DEQUEUE,
	TRACE_TRANSMIT,
	TRACE_BUSY,
	TRACE_ARRIVE,
	TRACE_RECEIVE,
	TRACE_SEGMENT,
	TRACE_READY,
	TRACE_READ,
	TRACE_ACKED,
	TRACE_DROP,
	/* Of each of netfilter's hooks, by its number; two points: in front of its programs, and behind them. */
	TRACE_PREROUTING,
	TRACE_PREROUTING_END,
	TRACE_INPUT,
	TRACE_INPUT_END,
	TRACE_FORWARD,
	TRACE_FORWARD_END,
	TRACE_OUTPUT,
	TRACE_OUTPUT_END,
	TRACE_POSTROUTING,
	TRACE_POSTROUTING_END,
	TRACE_OPENS,  /* another connection; the tuple is one of its */
	TRACE_FACE,   /* another tuple of it */
	TRACE_CLOSES, /* a socket of it is closed */
	TRACE_EXISTS, /* a socket of one that there was, and the process that has it open; it has no slot */
};

/*
 * A connection at one place, the same for both directions: the lower end is the first one; of ICMP,
 * that which sends requests. Those of ICMP have the identifier as ports.
 */
struct trace_tuple {
	struct ip_addr addrs[2];
	__u16 ports[2];
	__u8 proto;
	__u8 reserved[3];
};

_Static_assert(sizeof(struct trace_tuple) == 40, "no padding: it is a key");

static inline int trace_is_datagram(__u8 proto)
{
	return proto == 17 || proto == 1 || proto == 58; /* UDP, ICMP, ICMPv6 */
}

static inline int trace_is_lower(const struct ip_addr *one, __u16 one_port,
				 const struct ip_addr *other, __u16 other_port)
{
	for (int i = 0; i < 2; i++)
		if (one->lanes[i] != other->lanes[i])
			return one->lanes[i] < other->lanes[i];
	return one_port < other_port;
}

/* The same for both directions: where trace_ports counts the tuple. */
static inline __u32 trace_ports_index(__u16 one, __u16 other)
{
	return (one ^ other) & (TRACE_PORTS - 1);
}

/* The connection that a tuple belongs to. */
struct trace_face {
	__u64 id;
	__u32 slot;
	/* Packets of direction 0 are from the second end of the tuple to the first one. */
	__u8 is_turned;
	__u8 reserved[3];
};

enum trace_known {
	TRACE_KNOWS_WRITTEN = 1 << 0,
	TRACE_KNOWS_ACKED = 1 << 1,
	TRACE_KNOWS_READY = 1 << 2,
	TRACE_KNOWS_READ = 1 << 3,
	TRACE_KNOWS_ALL = (1 << 4) - 1,
};

/* What is known of a stream of bytes, as sequence numbers. */
struct trace_stream {
	__u32 first;   /* of its SYN */
	__u32 written; /* the next byte that a process will write */
	__u32 acked;   /* the next one to be acknowledged */
	__u32 ready;   /* the next one that a process cannot read yet */
	__u32 read;    /* the next one that a process will read */
	__u8 has_first;
	__u8 known; /* enum trace_known: which of the others are */
	__u8 reserved[2];
};

enum trace_ends {
	TRACE_ENDS_BOTH = 3, /* each direction has had a FIN, or one a RST */
	TRACE_ENDS_CLOSED = 1 << 2, /* a socket of it is closed */
};

/* A slot. */
struct trace_conn {
	__u32 is_used; /* a program sets it to take the slot; user space resets it */
	__u32 is_rejected;
	__u64 id;
	__u64 max_events; /* 0: TRACE_CANDIDATE_EVENTS */
	/* Programs set what follows. Sockets, by the direction that they send: others may have the
	 * same tuple in a namespace that is not joined. */
	__u64 sockets[2];
	__u32 ends;	   /* enum trace_ends */
	__u32 other_netns; /* of such sockets; 0: none was seen */
	/* Events that are not wanted, but needed: those that begin or end a stream, and others. */
	__u64 bounds, others;

	__u64 events; /* that are wanted; so far, those beyond the limit as well */
	__u64 last_ns; /* of the last one, CLOCK_BOOTTIME */
	struct trace_stream streams[2];
};

_Static_assert(sizeof(struct trace_conn) == 128, "lines of their own");

struct trace_report {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 id;      /* of the connection */
	__u64 buffer;
	__u64 pid_tgid;
	struct ip_addr src, dst;
	__u64 socket; /* that has a datagram, or reads one */
	__u32 seq;    /* of ICMP: of the request */
	__u32 ack;    /* of datagrams: the IP header's identification */
	__u32 length; /* of datagrams: with the transport header */
	__u32 slot;
	__u32 ifindex;
	__u32 netns;
	__u32 reason;
	__u32 cpu;
	__u16 src_port, dst_port;
	__u16 queue;
	__u8 point; /* enum trace_point */
	__u8 direction;
	__u8 tcp_flags;
	__u8 has_process; /* the process on the CPU calls the socket */
	__u8 proto;
	__u8 is_reply; /* of ICMP */
	__u16 piece;   /* of a fragment: where it begins in the datagram */
	__u8 is_fragment;
	__u8 reserved;
	char command[16];
	char interface[16];
};

_Static_assert(sizeof(struct trace_report) == 152, "no padding");

/* One per CPU. */
struct trace_counts {
	__u64 cut_by_rate;
	__u64 lost;    /* the ring was full */
	__u64 refused; /* connections that found no slot */
	__u64 second;  /* of CLOCK_BOOTTIME */
	__u64 events;  /* in it, that are wanted */
	__u64 missed;  /* all scratches were in use */
	__u64 nested;  /* runs of second programs, see trace.bpf.c */
	__u64 bounds;  /* events in that second, as in struct trace_conn */
	__u64 others;  /* likewise */
};

#endif
