/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Types that the programs of the tracer share with user space. */
#ifndef NETOBS_BPF_TRACE_H
#define NETOBS_BPF_TRACE_H

#include "bpf/types.h"

enum {
	TRACE_SLOTS_MIN = 1 << 12, /* of connections, including candidates */
	TRACE_FACES = 4, /* expected tuples per connection; NAT adds some */
	TRACE_CANDIDATE_EVENTS =
		16384, /* of a connection, until user space decides */
	TRACE_BOUND_EVENTS =
		256, /* of a connection, in unwanted layers: a few packets at several points */
	TRACE_PORTS = 1 << 16,
	TRACE_SCRATCHES =
		4, /* programs that run on a CPU, each interrupted by the next */
	TRACE_FRAGMENTS = 4096, /* datagrams whose fragments are on their way */
	TRACE_READERS = 4096,	/* sockets that have datagrams to be read */
	TRACE_REFUSED = 16384,	/* rejected flows of datagrams */
	TRACE_FUNCTIONS = 256,	/* that drop packets */
	TRACE_FUNCTION_LEN = 96,
};

/* The values of enum netobs_trace_point; those from TRACE_OPENS on are for user space alone. */
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
	/* Two points per hook of netfilter, by its number: before its programs, and after them. */
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
	TRACE_OPENS,  /* a new connection, with one of its tuples */
	TRACE_FACE,   /* another tuple of a connection */
	TRACE_CLOSES, /* a socket of a connection is closed */
	/* An open socket of an existing connection, with its process; has no slot. Direction 0: it opened it. */
	TRACE_EXISTS,
};

/* The values of enum netobs_turn_limit, plus 1. */
enum trace_limit {
	TRACE_LIMIT_UNKNOWN,
	TRACE_LIMIT_IDLE,
	TRACE_LIMIT_BUFFER,
	TRACE_LIMIT_WINDOW,
	TRACE_LIMIT_CWND,
	TRACE_LIMIT_RECOVERY,
	TRACE_LIMIT_QUEUED,
	TRACE_LIMIT_OTHER,
};

/*
 * A tuple of a connection, equal for both directions: the lower end is the first one; for ICMP, the
 * end that sends requests, with the identifier as both ports.
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

/* @return whether both are one end, of a socket that is connected to itself */
static inline int trace_is_self(const struct ip_addr *one, __u16 one_port,
				const struct ip_addr *other, __u16 other_port)
{
	return !((one->lanes[0] ^ other->lanes[0]) |
		 (one->lanes[1] ^ other->lanes[1]) | (one_port ^ other_port));
}

/* @return the index in trace_ports of a tuple, equal for both directions */
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

/* State of a stream of bytes, as sequence numbers. */
struct trace_stream {
	__u32 first;   /* the number of its SYN */
	__u32 written; /* the next byte that a process will write */
	__u32 acked;   /* the next one to be acknowledged */
	__u32 ready;   /* the next one that a process cannot read yet */
	__u32 read;    /* the next one that a process will read */
	__u8 has_first;
	__u8 known; /* enum trace_known: which of the others are set */
	__u8 reserved[2];
};

enum trace_ends {
	TRACE_ENDS_BOTH = 3, /* each direction has had a FIN, or one a RST */
	TRACE_ENDS_CLOSED = 1 << 2, /* a socket of the connection is closed */
	TRACE_ENDS_SELF =
		1 << 3, /* the socket is connected to itself: there is one direction */
};

enum trace_use {
	TRACE_FREE,
	TRACE_TAKEN,
	TRACE_CHOSEN, /* it is traced, and no candidate */
};

/* The slot of a connection. */
struct trace_conn {
	__u32 is_used; /* enum trace_use: a program takes the slot; user space does the rest */
	__u32 is_rejected;
	__u64 id;
	__u64 max_events; /* 0: TRACE_CANDIDATE_EVENTS */
	/*
	 * Programs set the members below. sockets: by the direction in which they send; sockets in
	 * another namespace, which is not joined, may have the same tuple.
	 */
	__u64 sockets[2];
	__u32 ends;	   /* enum trace_ends */
	__u32 other_netns; /* namespace of such sockets; 0: none was seen */
	/* Events that are not wanted, but needed: those that begin or end a stream (bounds), and others. */
	__u64 bounds, others;

	__u64 events; /* wanted events so far, including those beyond the limit */
	__u64 last_ns; /* time of the last event, CLOCK_BOOTTIME */
	struct trace_stream streams[2];
};

_Static_assert(sizeof(struct trace_conn) == 128, "lines of their own");

struct trace_report {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 id;      /* of the connection */
	__u64 buffer;
	__u64 pid_tgid;
	struct ip_addr src, dst;
	__u64 socket; /* that has a datagram, or reads one; of drops, the place in the kernel's code */
	__u32 seq; /* of an ICMP echo: the number of the request; of UDP: see hash_data() */
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
	__u16 piece;   /* offset of a fragment in its datagram */
	__u8 is_fragment;
	__u8 limit;	  /* enum trace_limit */
	char command[16]; /* of the thread group's leader */
	char thread[16];
	char interface[16];
};

_Static_assert(sizeof(struct trace_report) == 168, "no padding");

/* One per CPU. */
struct trace_counts {
	__u64 cut_by_rate;
	__u64 lost;    /* the ring was full */
	__u64 refused; /* connections that found no slot */
	__u64 second;  /* the current second of CLOCK_BOOTTIME */
	__u64 events;  /* wanted events in that second */
	__u64 missed;  /* all scratches were in use */
	__u64 nested;  /* runs of second programs, see trace.bpf.c */
	__u64 bounds;  /* events in that second, as in struct trace_conn */
	__u64 others;  /* other events in that second */
};

#endif
