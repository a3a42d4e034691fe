/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file turn.h
 * Records of what one host saw of the messages of a traced connection, and of what made them wait. A tracer
 * (trace.h) delivers these records; raw events need not leave the host.
 *
 * The two ends of a connection take turns: one writes a request, the other one reads it and
 * writes an answer. A *message* is what one end writes between two reads of data of the other
 * direction. Each host makes a record of what it sees of a message: the sender's host from the first
 * write to the uplink, the receiver's host from the uplink to the read. The *uplink* is the last
 * interface of the host on the way to the other end, or the first one on the way from it. A host with
 * both ends makes one record.
 *
 * Records of two hosts are of one message if the tuple at the uplink (wire_src ...), the protocol and
 * the number of the message (seq and bytes of TCP, ip_id of datagrams) agree.
 *
 * All times that end in _ns and are no durations are ns since 1970 UTC by the clock of the host that
 * made the record; 0: it was not seen.
 */
#ifndef NETOBS_TURN_H
#define NETOBS_TURN_H

#include <stdint.h>

#include <netobs/record.h>
#include <netobs/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a turn record is about; netobs_turn.kind. */
enum netobs_turn_kind {
	/** A message: all bytes that one end wrote between two reads. Of UDP, a datagram. */
	NETOBS_TURN_MESSAGE = 0,
	/** The handshake of TCP, from the first SYN. */
	NETOBS_TURN_CONNECT = 1,
	/** A quarter of a second of a direction in which no message ends, or in which both ends write
	 *  without waiting for each other: a stream. Beyond the limit of records, some seconds. */
	NETOBS_TURN_SLICE = 2,
	NETOBS_TURN_KINDS
};

/** What keeps TCP of the sender from sending more at a moment; exclusive. netobs_turn.limit_ns. */
enum netobs_turn_limit {
	NETOBS_TURN_IDLE =
		0, /**< nothing is unsent, and the process may write more */
	/** The send buffer is full (more than 2/3 of it, from which on a process is not woken to write),
	 *  and nothing or little of it is unsent. */
	NETOBS_TURN_BUFFER = 1,
	NETOBS_TURN_WINDOW =
		2, /**< the window of the receiver has no room for a segment */
	NETOBS_TURN_CWND = 3,	  /**< the congestion window is full */
	NETOBS_TURN_RECOVERY = 4, /**< TCP repairs a loss, or waits for a timeout */
	/** Bytes of the connection wait in queues of this host: TCP keeps few there (small queues). */
	NETOBS_TURN_QUEUED = 5,
	NETOBS_TURN_OTHER = 6, /**< pacing, Nagle, the CPU */
	NETOBS_TURN_LIMITS
};

/** What a thread does; exclusive. The second index of netobs_turn.thread_ns. */
enum netobs_thread_state {
	NETOBS_THREAD_RUN = 0, /**< it runs on a CPU */
	NETOBS_THREAD_WAIT =
		1, /**< it could run, and waits for a CPU, or its group is throttled */
	NETOBS_THREAD_SLEEP = 2, /**< it waits for something else */
	NETOBS_THREAD_STOP =
		3, /**< a signal, a debugger or the freezer of its control group has stopped it */
	NETOBS_THREAD_STATES
};

/** The time of which the states of a thread are known; the first index of netobs_turn.thread_ns. */
enum netobs_turn_phase {
	/** The writer, from the first write to the end of the last one; of a slice, while TCP was idle. */
	NETOBS_TURN_WRITING = 0,
	/** The reader, while bytes of the message could be read, and it had not read all of them; of
	 *  CONNECT at the server, while it could be accepted. */
	NETOBS_TURN_READING = 1,
	/** The reader, from its last read to the first byte of what it writes next. */
	NETOBS_TURN_THINKING = 2,
	NETOBS_TURN_PHASES
};

/** Bits of netobs_turn.record.has. */
enum netobs_turn_field {
	NETOBS_TURN_HAS_SEND = 1 << 0, /**< the sender's socket is on this host */
	NETOBS_TURN_HAS_READ = 1 << 1, /**< the receiver's socket is on this host */
	/** The direction 0 is the one that opened the connection. */
	NETOBS_TURN_HAS_INITIATOR = 1 << 2,
	/** All that this host can see has happened: no later record of this message replaces this one. */
	NETOBS_TURN_HAS_END = 1 << 3,
	/** Both ends wrote before they had read all of the other one's bytes: there are no turns. */
	NETOBS_TURN_HAS_OVERLAP = 1 << 4,
	NETOBS_TURN_HAS_LIMITS = 1 << 5,  /**< limit_ns */
	NETOBS_TURN_HAS_THREADS = 1 << 6, /**< thread_ns */
	NETOBS_TURN_HAS_PROCESS = 1 << 7, /**< pid, command */
	NETOBS_TURN_HAS_OFFSET =
		1 << 8, /**< offset is from the first byte of the stream */
};

/**
 * What this host saw of a message: NETOBS_RECORD_TURN. A message that takes longer than a second has a
 * record each second, or with each slice, the last of which has NETOBS_TURN_HAS_END; each replaces the
 * former one with equal connection, direction, kind and offset. The last one follows 10 s after the last event at the
 * latest, unless bytes can be read: until they are, there is a record each second.
 * Library-allocated, read-only, grows at the end.
 */
struct netobs_turn {
	/** Its time is that of the first write, of the first SYN, or of the beginning of the slice; if
	 *  the sender is elsewhere, of the first packet with bytes of it at the uplink. */
	struct netobs_record record;

	uint64_t connection; /**< number of the connection, in all records of it by this tracer */
	int64_t offset; /**< offset of the first byte, as in struct netobs_trace_event; of a datagram, its number
			  *  in its direction, from 1 */
	uint32_t bytes; /**< length of the message; so far, without NETOBS_TURN_HAS_END; at most 2^32 - 1 */
	uint32_t seq;	/**< TCP's sequence number of the first byte */
	/** Of a datagram: identification of IP; of UDP without one, a hash of the length and the first 64 bytes of the
	 *  data. Datagrams with equal data have it in common. 0: none, as these bytes were not in the linear part of the
	 *  kernel's buffer */
	uint32_t ip_id;
	uint32_t netns_inode; /**< network namespace of the socket; of the sender's, if both are here */

	uint8_t src[16]; /**< address of the sender, at the socket of this host; IPv4 as ::ffff:a.b.c.d */
	uint8_t dst[16]; /**< address of the receiver, at the socket of this host */
	uint8_t wire_src[16]; /**< address of the sender, at the uplink; zeroes: none was passed */
	uint8_t wire_dst[16]; /**< address of the receiver, at the uplink */
	uint16_t src_port, dst_port;
	uint16_t wire_src_port, wire_dst_port;
	uint8_t protocol;
	uint8_t direction; /**< 0 or 1, of the connection */
	uint8_t kind;	   /**< enum netobs_turn_kind */
	uint8_t reserved;
	uint32_t one_of; /**< how many messages this record stands for, because of the limit of records; 1 or more */
	uint32_t uplink_ifindex; /**< index of the uplink; 0: none was passed */
	uint32_t uplink_netns_inode;
	char uplink[16]; /**< name of the uplink */

	/* Times of the last byte of the message, in the order in which it passes: */
	int64_t written_ns; /**< the process has written all */
	int64_t sent_ns;    /**< TCP has sent it for the first time */
	int64_t out_ns; /**< it left at the uplink; of the attempt that arrived, or the last one */
	int64_t in_ns; /**< it arrived at the uplink for the first time; of CONNECT at the client, the SYN+ACK */
	int64_t segment_ns; /**< TCP of the receiver got it */
	int64_t ready_ns; /**< it could be read; of CONNECT at the server, it can be accepted */
	/** A process read it; of CONNECT at the server, a process used the accepted socket first. Such a record is not
	 *  over as long as bytes can be read there. 0 with an end: no bytes came, and nothing was written. */
	int64_t read_ns;
	int64_t acked_ns; /**< the sender has an acknowledgment for it */
	/** The receiver's process began to write next; of CONNECT at the server, the first SYN+ACK was sent. */
	int64_t answer_ns;
	int64_t end_ns; /**< the last time of which this record tells; of a slice, its end */

	/** Parts of the time of the last byte, as in struct netobs_journey; of a slice, the mean over its
	 *  bytes. Parts without a bit in unknown_parts sum up to the time between the first and the last
	 *  of its steps on this host. */
	uint64_t part_ns[NETOBS_JOURNEY_PARTS];
	uint32_t unknown_parts; /**< 1 << part */
	/** Transmissions of the last byte from the first interface; of CONNECT, SYNs, also those that this host's
	 *  netfilter dropped before that. */
	uint32_t attempts;

	/** How the time from the first write to the first transmission of the last byte divides, or the
	 *  time of the slice: they sum up to it. */
	uint64_t limit_ns[NETOBS_TURN_LIMITS];
	/** Time in each state, for each phase; the states add up to the time of the phase. */
	uint64_t thread_ns[NETOBS_TURN_PHASES][NETOBS_THREAD_STATES];
	uint64_t unread_ns; /**< of a slice: while bytes could be read, and were not */

	/* Bytes of the message, each as often as it was seen there, for what was lost between two points.
	 * Of CONNECT: SYNs. */
	uint64_t sent_bytes; /**< that TCP gave to the first interface, or netfilter dropped before it */
	uint64_t out_bytes;	/**< that left at the uplink */
	uint64_t in_bytes;	/**< that arrived at the uplink */
	uint64_t segment_bytes; /**< that TCP of the receiver got */
	uint64_t dropped_bytes; /**< that this kernel dropped on the way, without those that were duplicates */
	uint32_t drops; /**< packets that had the dropped bytes */
	uint32_t drop_reason; /**< of the last of these, as in struct netobs_trace_event; 0: none */
	uint32_t largest_sent; /**< the largest range that one packet at the uplink had; out */
	uint32_t largest_in; /**< the largest range that one packet at the uplink had; in */

	uint32_t pid; /**< process that wrote, or that read if the sender is elsewhere */
	uint32_t tid;		 /**< thread of pid */
	uint32_t reader_pid;	 /**< process that read, if both are here */
	uint32_t reader_tid;	 /**< thread of reader_pid */
	char command[16];	 /**< command of pid */
	char reader_command[16]; /**< command of reader_pid */
	char container_id[72];	 /**< container of pid; "": none */
	char drop_cause[64];	 /**< name of the reason of the last drop */
	char drop_function[64]; /**< function of the kernel that dropped it; "": not known */

	int64_t alert_ns; /**< time of the alert that the connection is traced for; 0: of none */
	char alert[64]; /**< name of the rule of that alert */
};

/** What a queue record is about; netobs_queue.kind. */
enum netobs_queue_kind {
	NETOBS_QUEUE_QDISC =
		0, /**< a queueing discipline, while bytes of a traced connection waited in it */
	NETOBS_QUEUE_UPLINK =
		1, /**< what arrived at an uplink in the 10 ms before packets of traced connections */
	NETOBS_QUEUE_CPU =
		2, /**< who ran, while a thread of a traced connection waited for a CPU */
	NETOBS_QUEUE_KINDS
};

#define NETOBS_QUEUE_SHARES_MAX 8

/** Who filled a queue: a flow, or a process for NETOBS_QUEUE_CPU. */
struct netobs_queue_share {
	uint8_t src[16]; /**< source, at the interface of the queue */
	uint8_t dst[16];
	uint16_t src_port, dst_port;
	uint8_t protocol;  /**< 0: it is no flow */
	uint8_t is_traced; /**< 1: it is a traced connection */
	uint8_t reserved[2];
	uint32_t pid;	 /**< process that sent it, or that ran; 0: not known */
	uint64_t amount; /**< its bytes; of NETOBS_QUEUE_CPU, the ns that it ran */
	char command[16];
	char container_id[72];
};

/** Who filled a queue for a time: NETOBS_RECORD_QUEUE. Library-allocated, read-only, grows at the end. */
struct netobs_queue {
	struct netobs_record record; /**< its time is the beginning */
	int64_t end_ns;
	uint64_t waited_ns; /**< how long bytes of traced connections, or a thread of them, waited in that time */
	/** All that passed meanwhile, in the unit of the shares; if the thread's group was throttled for most of the
	 *  time, what the group had in the last second: it may have used up its quota before. */
	uint64_t amount;
	uint64_t rest; /**< the part of amount that is in no share */
	uint64_t throttled_ns; /**< of NETOBS_QUEUE_CPU: the thread's group was not allowed to run */
	uint32_t throttled; /**< how often that group was not allowed to run */
	uint32_t tid;	    /**< of NETOBS_QUEUE_CPU: the thread that waited */
	uint32_t pid;	    /**< process of that thread */
	uint32_t ifindex;
	uint32_t netns_inode;
	uint8_t kind; /**< enum netobs_queue_kind */
	uint8_t reserved;
	uint16_t n_shares;
	char interface[16];
	char command[16]; /**< of pid */
	char cgroup[128]; /**< of NETOBS_QUEUE_CPU: the group that was throttled, the end of its path */
	struct netobs_queue_share shares[NETOBS_QUEUE_SHARES_MAX]; /**< largest first */
};

/** What a network namespace that traced connections pass has counted in a second: NETOBS_RECORD_HOST.
 *  Library-allocated, read-only, grows at the end. */
struct netobs_host {
	struct netobs_record record; /**< its time is the beginning */
	int64_t end_ns;
	uint32_t netns_inode;
	uint32_t missing_points; /**< 1 << enum netobs_trace_point that this kernel has no tracepoint for */
	uint64_t listen_overflows; /**< connections that found the accept queue full: TcpExtListenOverflows */
	uint64_t listen_drops;	  /**< TcpExtListenDrops */
	uint64_t conntrack_drops; /**< packets that found no room in the table: drop, early_drop, insert_failed of nf_conntrack */
	uint64_t udp_buffer_errors; /**< datagrams that found the socket's buffer full: RcvbufErrors */
	uint64_t carrier_changes;    /**< of the uplinks in this namespace */
	uint64_t neighbour_failures; /**< packets without an answer of ARP or ND */
	uint32_t accept_queue; /**< longest at the end, of the listening sockets of traced connections */
	uint32_t accept_limit; /**< limit of that accept queue */
	char uplink[16]; /**< whose carrier changed, or the one that was used last */
	char host[64];	 /**< name of the host: uname(2) */
	char kernel[64]; /**< release of the kernel: uname(2) */
};

/** The name of a kind, "message", "connect", "slice"; NULL beyond the last. */
NETOBS_API const char *netobs_turn_kind_name(unsigned int kind);

/** The name of a limit, "idle", "buffer", "window" ...; NULL beyond the last. */
NETOBS_API const char *netobs_turn_limit_name(unsigned int limit);

/** The name of a kind, "qdisc", "uplink", "cpu"; NULL beyond the last. */
NETOBS_API const char *netobs_queue_kind_name(unsigned int kind);

#ifdef __cplusplus
}
#endif

#endif
