/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file trace.h
 * Follows the bytes of chosen connections through this kernel, from send() to read(): of TCP, of
 * datagrams of UDP, and of echoes of ICMP.
 *
 * A tracer has two results. *Events* are points that bytes of a connection pass: a socket, TCP, a
 * queueing discipline, a driver, in whichever network namespace, before and after NAT, and within
 * tunnels. *Journeys* join them: the life of a range of bytes, through segmentation, coalescing,
 * copies and retransmissions. Bytes are identified by their place in the stream, which none of
 * these changes, and not by buffers. Datagrams have no such place: they are identified by their
 * buffer as long as it remains the same from one point to the next, and by numbers in their headers.
 *
 * Connections are chosen by an expression, when they begin or when the tracer starts, and by the
 * process that has their socket. Nothing is attached without a tracer, and the kernel detaches
 * everything when its process ends.
 *
 * A tracer is a struct netobs of its own kind, and independent of others: netobs_start() and the
 * functions after it in netobs.h run it, by the rules there. It needs what netobs_probe() calls "trace".
 */
#ifndef NETOBS_TRACE_H
#define NETOBS_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/netobs.h>
#include <netobs/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The layer that bytes are in; netobs_trace_event.layer, netobs_journey_step.layer. */
enum netobs_trace_layer {
	NETOBS_TRACE_LAYER_SOCKET = 0,
	NETOBS_TRACE_LAYER_TCP = 1,
	NETOBS_TRACE_LAYER_QDISC =
		2, /**< queueing discipline of an interface that sends */
	NETOBS_TRACE_LAYER_DEVICE = 3, /**< interface and its driver */
	NETOBS_TRACE_LAYER_IP = 4,     /**< IP, at netfilter's hooks */
	NETOBS_TRACE_LAYERS
};

/** Points of events, by the tracepoint of the kernel; netobs_trace_event.point. */
enum netobs_trace_point {
	/** A process writes: the range is what the call has still to write. tcp_sendmsg_locked, Linux 6.16 */
	NETOBS_TRACE_SEND = 0,
	/** A call that wrote has ended: the socket has the range. sock_send_length, Linux 6.3 */
	NETOBS_TRACE_SENT = 1,
	/** TCP sends the range once more. tcp_retransmit_skb */
	NETOBS_TRACE_RETRANSMIT = 2,
	/** A segment is given to an interface. net_dev_queue */
	NETOBS_TRACE_QUEUE = 3,
	/** A queueing discipline takes it. qdisc_enqueue */
	NETOBS_TRACE_ENQUEUE = 4,
	/** A queueing discipline gives it back. qdisc_dequeue */
	NETOBS_TRACE_DEQUEUE = 5,
	/** The driver gets it. net_dev_start_xmit */
	NETOBS_TRACE_TRANSMIT = 6,
	/** The driver refused it, which requeues it. net_dev_xmit */
	NETOBS_TRACE_BUSY = 7,
	/** A driver delivers it. netif_rx, napi_gro_receive_entry */
	NETOBS_TRACE_ARRIVE = 8,
	/** The layers above the interface get it, merged with others by GRO. netif_receive_skb */
	NETOBS_TRACE_RECEIVE = 9,
	/** TCP of the receiver processes it. tcp_probe */
	NETOBS_TRACE_SEGMENT = 10,
	/** The range can be read, without a gap, and its reader is woken. sk_data_ready, Linux 6.3 */
	NETOBS_TRACE_READY = 11,
	/** A process has read the range. tcp_rcv_space_adjust */
	NETOBS_TRACE_READ = 12,
	/** The sender has an acknowledgment for the range. tcp_probe */
	NETOBS_TRACE_ACKED = 13,
	/** The kernel drops it: reason, cause. kfree_skb */
	NETOBS_TRACE_DROP = 14,
	/** With netobs_trace_opts.netfilter, as all that follow: a packet that an interface has received
	 *  comes to netfilter's hook in front of routing. */
	NETOBS_TRACE_PREROUTING = 15,
	/** The packet has passed all rules of that hook. */
	NETOBS_TRACE_PREROUTING_END = 16,
	/** A packet for this host comes to the input hook. */
	NETOBS_TRACE_INPUT = 17,
	/** The packet has passed all rules of that hook. */
	NETOBS_TRACE_INPUT_END = 18,
	/** A packet that this host forwards comes to the forward hook. */
	NETOBS_TRACE_FORWARD = 19,
	/** The packet has passed all rules of that hook. */
	NETOBS_TRACE_FORWARD_END = 20,
	/** A packet that this host sends itself comes to the output hook. */
	NETOBS_TRACE_OUTPUT = 21,
	/** The packet has passed all rules of that hook. */
	NETOBS_TRACE_OUTPUT_END = 22,
	/** A packet that leaves comes to the hook behind routing. */
	NETOBS_TRACE_POSTROUTING = 23,
	/** The packet has passed all rules of that hook. */
	NETOBS_TRACE_POSTROUTING_END = 24,
	NETOBS_TRACE_POINTS
};

/** Bits of netobs_trace_event.record.has. */
enum netobs_trace_field {
	NETOBS_TRACE_HAS_OFFSET =
		1 << 0, /**< offset, from the first byte of the stream */
	NETOBS_TRACE_HAS_PROCESS =
		1 << 1, /**< the process on the CPU is the one that owns the socket */
	NETOBS_TRACE_HAS_REASON = 1 << 2, /**< reason, cause: of drops, Linux 5.17 */
	NETOBS_TRACE_HAS_INITIATOR =
		1 << 3, /**< the direction 0 is the one that opened the connection */
	NETOBS_TRACE_HAS_OWNER = 1 << 4, /**< owner_pid, owner_command */
	NETOBS_TRACE_HAS_LIMIT = 1 << 5	 /**< limit */
};

/** Enough for any event or journey in JSON: netobs_record_json(). */
#define NETOBS_TRACE_JSON_MAX 32768

/** A range of bytes of one direction of a connection at a point: NETOBS_RECORD_TRACE. */
struct netobs_trace_event {
	struct netobs_record record; /**< its time is that of the event */

	uint64_t connection; /**< the same for all events of a connection, by this tracer */
	/** Position of the first byte in the stream, or in the datagram. Without
	 *  NETOBS_TRACE_HAS_OFFSET: from the first byte seen on, and maybe negative. */
	int64_t offset;
	uint32_t length; /**< bytes of the stream; of a datagram, with its header of UDP or ICMP */
	/** Of TCP, of the first byte; of ICMP, of the request; of UDP without an ip_id, a hash of its length and the
	 *  first 64 bytes of its data, 0: not known. */
	uint32_t seq;
	uint32_t ack; /**< of TCP; 0 at points without a header */

	uint8_t src[16]; /**< at this point, so before or after NAT; in a tunnel, the inner one; IPv4 as ::ffff:a.b.c.d */
	uint8_t dst[16];
	uint16_t src_port;
	uint16_t dst_port;
	uint8_t direction; /**< 0 or 1, of the connection */
	uint8_t layer;	   /**< enum netobs_trace_layer */
	uint8_t point;	   /**< enum netobs_trace_point */
	uint8_t tcp_flags; /**< of the header; 0 at points without one */

	uint32_t cpu;
	uint32_t pid; /**< of the process on the CPU; in interrupts, any one. As the initial namespace counts */
	uint32_t tid; /**< of its thread */
	uint32_t ifindex;     /**< 0: none */
	uint32_t netns_inode; /**< of the interface or the socket */
	uint32_t reason;  /**< of drops; enum skb_drop_reason of this kernel */
	uint16_t queue;	  /**< of the interface; 0 at points without a packet */
	uint8_t protocol; /**< 6: TCP, 17: UDP, 1: ICMP, 58: ICMPv6 */
	uint8_t is_fragment; /**< a part of a datagram */
	/** enum netobs_turn_limit (turn.h): what has kept the socket from sending since its last event with a
	 *  limit; at "send" and, of the bytes that the receiver of this segment sends itself, at "segment". At
	 *  "queue", of new bytes, what keeps it from sending more from then on. */
	uint8_t limit;
	uint8_t reserved[3];
	uint64_t buffer; /**< address of the buffer in the kernel; 0: none. Addresses are used again. */

	char command[16]; /**< of that process, as in /proc/PID/comm; it may fill the array */
	char thread[16];    /**< name of that thread, if it differs; else "" */
	char interface[16]; /**< "": none */
	char cause[64]; /**< name of the reason: "SKB_DROP_REASON_NETFILTER_DROP" */

	uint64_t socket; /**< of datagrams at "ready" and "read": its address in the kernel; else 0 */
	uint32_t ip_id; /**< of datagrams: identification of IP, for fragments; else 0 */

	/** The process that last used the socket that sends these bytes or, if that process is not known, the
	 *  socket that gets them. With NETOBS_TRACE_HAS_OWNER. */
	uint32_t owner_pid;
	char owner_command[16]; /**< of that process */
	char function[64]; /**< of drops: function of the kernel that drops it; "": not known */
};

/** Parts of the time of a journey, in the order that bytes pass them; each ends where the next one
 *  begins, so their sum is the time of the journey. netobs_journey.part_ns. */
enum netobs_journey_part {
	NETOBS_JOURNEY_WRITE = 0, /**< the call writes other bytes before these */
	NETOBS_JOURNEY_TCP =
		1, /**< written, and not sent yet: windows, Nagle, pacing, IP of the sender */
	NETOBS_JOURNEY_RECOVERY =
		2, /**< from the first attempt to the one that arrived */
	NETOBS_JOURNEY_QDISC =
		3, /**< in queues of interfaces, of all hops together */
	NETOBS_JOURNEY_DEVICE =
		4, /**< from a driver of this host to the next interface of it */
	NETOBS_JOURNEY_NETWORK =
		5, /**< from the last driver of this host to the acknowledgment */
	NETOBS_JOURNEY_FORWARD =
		6, /**< from an interface that received to the next one that sends */
	NETOBS_JOURNEY_STACK =
		7, /**< from the last interface to TCP of the receiver */
	NETOBS_JOURNEY_GAP = 8, /**< earlier bytes are missing */
	NETOBS_JOURNEY_READER =
		9, /**< it can be read, and no process has read it yet */
	NETOBS_JOURNEY_PARTS
};

/** Bits of netobs_journey.record.has: ends of the journey that were seen. */
enum netobs_journey_field {
	NETOBS_JOURNEY_HAS_SEND =
		1 << 0, /**< its beginning: a process of this host wrote the bytes */
	NETOBS_JOURNEY_HAS_READ =
		1 << 1, /**< its end: a process of this host read them */
	NETOBS_JOURNEY_HAS_ACKED =
		1 << 2, /**< its end, for a receiver elsewhere: acked_ns */
	NETOBS_JOURNEY_HAS_OFFSET = 1 << 3, /**< as NETOBS_TRACE_HAS_OFFSET */
	NETOBS_JOURNEY_HAS_INITIATOR = 1 << 4, /**< as NETOBS_TRACE_HAS_INITIATOR */
	/** Steps were left out in the middle: there were more than NETOBS_JOURNEY_STEPS_MAX. */
	NETOBS_JOURNEY_HAS_CUT = 1 << 5,
	NETOBS_JOURNEY_HAS_DROP =
		1 << 6, /**< its end: this kernel dropped the datagram */
	NETOBS_JOURNEY_HAS_NETFILTER = 1 << 7, /**< netfilter_ns */
};

#define NETOBS_JOURNEY_STEPS_MAX 64

/** A point that the bytes of a journey passed. */
struct netobs_journey_step {
	int64_t time_ns; /**< since 1970 UTC */
	uint32_t cpu;
	uint32_t pid; /**< as in struct netobs_trace_event */
	uint32_t ifindex;
	uint32_t netns_inode;
	uint8_t layer; /**< enum netobs_trace_layer */
	uint8_t point; /**< enum netobs_trace_point */
	/** 0: of the attempt that arrived; 1 ...: of earlier attempts, which did not */
	uint8_t attempt;
	uint8_t reserved[5];
	char command[16];
	char interface[16];
};

/** The life of a range of bytes that passed all points together: NETOBS_RECORD_JOURNEY. All
 *  journeys of a direction together have each byte once; those of a datagram have each byte of it
 *  once, from the first interface on: what its process did before is not known. */
struct netobs_journey {
	struct netobs_record record; /**< its time is that of the first step */

	uint64_t connection;
	int64_t offset;	 /**< as in struct netobs_trace_event */
	uint32_t length; /**< as there */
	uint32_t seq; /**< of TCP, of the first byte; else the number of the datagram in its direction, from 1 */

	uint8_t src[16]; /**< of the sender's socket if that is on this host, else as seen first */
	uint8_t dst[16];
	uint16_t src_port;
	uint16_t dst_port;
	uint8_t direction;
	uint8_t protocol; /**< as in struct netobs_trace_event */
	uint16_t n_steps;
	uint32_t n_attempts; /**< transmissions from the first interface: 1 without retransmissions */
	uint32_t n_drops; /**< drops by this kernel, which steps show */

	int64_t end_ns;	  /**< of the last step, since 1970 UTC */
	int64_t acked_ns; /**< since 1970 UTC; 0: not seen */
	/** enum netobs_journey_part; parts without a bit in unknown_parts sum up to
	 *  end_ns - record.time_ns together with unknown_ns */
	uint64_t part_ns[NETOBS_JOURNEY_PARTS];
	uint64_t unknown_ns; /**< between steps of which no part is known */
	/** Time in hooks of netfilter, of the attempt that arrived; it is part of the times above. With
	 *  NETOBS_JOURNEY_HAS_NETFILTER; hooks are not seen in all namespaces from the first byte on. */
	uint64_t netfilter_ns;
	/** 1 << part: this part of the journey was not observed; 0: the journey is complete */
	uint32_t unknown_parts;

	uint32_t src_pid; /**< of the process that wrote: NETOBS_JOURNEY_HAS_SEND */
	uint32_t dst_pid; /**< of the process that read: NETOBS_JOURNEY_HAS_READ */
	uint32_t drop_reason; /**< of the last drop: as reason of struct netobs_trace_event; 0: none */
	/** Of datagrams: identification of IP; of UDP without one, a hash of its length and the first 64 bytes of its
	 *  data, which all hosts see alike; 0: none */
	uint32_t ip_id;
	uint32_t reserved;
	char src_command[16]; /**< of that process; it may fill the array */
	char dst_command[16];
	char drop_cause[64]; /**< name of the reason of the last drop */

	/** Time and rule of the alert that the connection is traced for: netobs_trace_target.alert.
	 *  0, "": none. With several alerts, the last one before the journey was delivered. */
	int64_t alert_ns;
	char alert[64]; /**< the rule's name; "": it has none */

	/** The first n_steps are in use. They are the last member, so copies can leave the others out. */
	struct netobs_journey_step steps[NETOBS_JOURNEY_STEPS_MAX];
};

/** Options for netobs_trace_new(). Zero means "default" for every field. */
struct netobs_trace_opts {
	size_t sz; /**< sizeof(struct netobs_trace_opts) */

	/** pcap-filter(7): connections of which a packet from either end would match; NULL: all.
	 *  Only addresses, ports and protocols matter. */
	const char *filter;
	uint32_t max_connections; /**< traced at a time; default 1024, at most 65536 */
	uint32_t max_events; /**< of a connection; default 1,000,000. Further ones are counted. */
	uint32_t max_rate; /**< events a second on a CPU; default 200,000. Further ones are counted. */
	uint32_t ring_bytes; /**< default 8 MiB; a power of two, at least 64 KiB */
	/** Features to do without, as in struct netobs_opts. */
	uint64_t disable_features;
	/** 1: only netobs_trace_arm() chooses connections, and nothing is attached while none is
	 *  chosen; @p filter is ignored, and no process can be chosen. */
	uint8_t only_armed;
	/** 1: trace netfilter's hooks, too, by two programs at each, in the network namespaces that
	 *  traced connections pass, from their first event there until 10 s after the last
	 *  one, in 64 namespaces at most. At each hook there, the programs look at the ports of all packets.
	 *  Needs CAP_NET_ADMIN, CAP_SYS_ADMIN for namespaces that are not the caller's, CAP_SYS_PTRACE for
	 *  those of them without a name in /run/netns, and what netobs_probe() calls "trace_netfilter"; if one of these is missing, that is logged, and the rest is
	 *  traced. When the links are closed, the kernel drops packets that wait in an NFQUEUE of the namespace. */
	uint8_t netfilter;
	/** Layers of events that on_record gets: 1 << enum netobs_trace_layer of each; default all. Without
	 *  journeys, programs that only other layers need are not attached, so that other connections
	 *  pay less, and max_events and max_rate limit and count events of these layers only. Events of IP
	 *  need @p netfilter as well. */
	uint8_t layers;
	uint8_t reserved; /**< 0 */
	/** Only connections with a socket of this process, as the initial namespace counts; 0: any. A socket
	 *  is that of a process if it writes to it, reads from it, or has it open, which is
	 *  checked once a second; it may be that of several. A connection that is
	 *  traced stays so if its socket is handed to another process. */
	uint32_t pid;
	/** Only those of processes with this command, or of threads with it that use the socket;
	 *  NULL: any */
	const char *command;
	/** Only those of processes in this container: its ID, or the beginning of it, as the name of the
	 *  control group has it; NULL: any */
	const char *container;

	/** Network namespaces, up to its first NULL: only their events count, those elsewhere in this
	 *  kernel are of other hosts. Names as of ip-netns(8), or absolute paths, which must exist when the tracer
	 *  is made; at most 64. NULL: all namespaces */
	const char *const *netns;

	/** A record of a type in @p records, valid during the call only. */
	void (*on_record)(const struct netobs_record *record, void *user);
	/** 1 << NETOBS_RECORD_TRACE: events, struct netobs_trace_event; 1 << NETOBS_RECORD_JOURNEY: journeys,
	 *  struct netobs_journey, for which nothing is kept otherwise; of turn.h, 1 << NETOBS_RECORD_TURN, turns that
	 *  are made of journeys, 1 << NETOBS_RECORD_QUEUE, for which programs look at other packets, too, while
	 *  traced ones wait in their queue, and 1 << NETOBS_RECORD_HOST; the latter two need CAP_SYS_ADMIN and
	 *  CAP_SYS_PTRACE to look into namespaces and at processes of others; 0: journeys. */
	uint64_t records;
	/** A log line, without newline; NULL: nothing is logged. */
	void (*on_log)(int level, const char *message, void *user);
	void *user; /**< passed back to every callback */

	/** Buffer for the reason why netobs_trace_new() failed; NULL: none. */
	char (*error)[NETOBS_ERROR_MAX];
};

/** Totals since the start. */
struct netobs_trace_stats {
	size_t sz; /**< sizeof(struct netobs_trace_stats), set by the caller */
	uint64_t events; /**< delivered, or left out because @p records has none */
	uint64_t journeys;	    /**< delivered */
	uint64_t complete_journeys; /**< of these, without unknown parts */
	uint64_t connections;	    /**< traced since the start */
	/** Connections that match, but max_connections were traced; or might match, but too many
	 *  began at once */
	uint64_t refused_connections;
	uint64_t cut_by_connection; /**< events beyond max_events */
	uint64_t cut_by_rate;	    /**< events beyond max_rate */
	/** Events that found no room in the ring, or were in an interrupt of a program for the same
	 *  point */
	uint64_t lost_events;
	uint64_t current_connections; /**< that are traced now */
	/** Delivered before their end, because 524,288 events are kept of all connections, and 65,536 of one
	 *  direction of a connection */
	uint64_t cut_journeys;
	/** Network namespaces with events whose hooks of netfilter have not been attached to; all beyond 1024 count
	 *  as one */
	uint64_t unhooked_namespaces;
	uint64_t turns; /* delivered */
	/** Left out, because a connection has more than 5 in 4 seconds: netobs_turn.one_of */
	uint64_t thinned_turns;
};

/**
 * Make a tracer. Checks the options; touches nothing in the kernel.
 *
 * netobs_start() chooses among the open connections; it needs CAP_BPF and CAP_PERFMON (or root).
 * Events that come meanwhile are delivered by the first netobs_dispatch(), up to 65536 of them.
 * Callbacks may call netobs_stop(), netobs_trace_stats_get() and netobs_last_error(), and nothing else of
 * this tracer. After netobs_stop(), journeys are delivered as far as they are known. netobs_free() loses
 * events and journeys that were not delivered.
 *
 * @param opts  copied, and may go away afterwards; on_record must be set
 * @param ret_trace  yours: netobs_free()
 * @return 0; -EINVAL: an option is wrong, the error text names it; -ENOMEM
 */
NETOBS_API int netobs_trace_new(const struct netobs_trace_opts *opts,
				struct netobs **ret_trace);

/** A connection for netobs_trace_arm(). */
struct netobs_trace_target {
	size_t sz; /**< sizeof(struct netobs_trace_target) */
	uint8_t client[16]; /**< that opened it; IPv4 as ::ffff:a.b.c.d. As seen anywhere on its way: */
	uint8_t server[16]; /**< NAT may give it other addresses elsewhere */
	uint16_t client_port;
	uint16_t server_port;
	/** Trace it for so long, from now on; 0: until it has ended. Of a connection that is traced
	 *  already: until then, if that is later. */
	uint32_t duration_ms;
	uint32_t reserved; /**< 0 */
	/** The alert that it is traced for: its time; 0: none. Journeys of the connection have this and the
	 *  name from now on. */
	int64_t alert_ns;
	const char *alert; /**< name of the alert's rule; NULL: it has none */
};

/**
 * Trace an open connection, such as one of an alert. What its sockets have done before is not
 * known, so offsets begin with the first byte seen.
 *
 * @return 0; -EINVAL: an argument is wrong, or the tracer does not run; -ENOSPC: max_connections are
 *         traced; -EEXIST: programs have just begun with it, and netobs_dispatch() has not yet read
 *         that; -ENOMEM; others from the kernel
 */
NETOBS_API int netobs_trace_arm(struct netobs *trace,
				const struct netobs_trace_target *target);

/**
 * Read the totals.
 *
 * @param ret_stats  the caller sets sz; filled up to that size, and sz becomes the
 *                   number of bytes filled
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_trace_stats_get(const struct netobs *trace,
				      struct netobs_trace_stats *ret_stats);

/** The name of a layer: "socket", "tcp", "qdisc", "device", "ip"; NULL beyond the last. */
NETOBS_API const char *netobs_trace_layer_name(unsigned int layer);

/** The name of a point: "send", "sent", "retransmit" ...; NULL beyond the last. */
NETOBS_API const char *netobs_trace_point_name(unsigned int point);

/** The name of a part of a journey: "write", "tcp", "recovery" ...; NULL beyond the last. */
NETOBS_API const char *netobs_journey_part_name(unsigned int part);

#ifdef __cplusplus
}
#endif

#endif
