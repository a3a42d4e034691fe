/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file drop.h
 * Packets that this kernel drops: how many, why, and where.
 *
 * An observer counts each packet that the kernel frees without having used it (its tracepoint
 * kfree_skb), in all network namespaces, whichever interfaces are observed: those that the host
 * receives, forwards and sends itself. While no observer is started, nothing is attached.
 *
 * It does not see what never became a packet of the kernel, or ended before: what a network card
 * or its driver drops, or an XDP program in a driver, and segments that TCP frees without the
 * tracepoint, such as those that another one contains. The counters of interfaces have most of what network cards,
 * drivers and XDP drop.
 *
 * The observer is a struct netobs of its own kind, and independent of others: netobs_start() and the functions
 * after it in netobs.h run it, by the rules there. It needs what netobs_probe() calls "drops"; reasons need
 * "drop_reasons".
 */
#ifndef NETOBS_DROP_H
#define NETOBS_DROP_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/netobs.h>
#include <netobs/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The meaning of a drop; netobs_drop.kind. */
enum netobs_drop_kind {
	NETOBS_DROP_LOSS = 0, /**< the packet is lost, for the reason */
	/** The kernel states none: SKB_DROP_REASON_NOT_SPECIFIED, or it is older than Linux 5.17 */
	NETOBS_DROP_UNSPECIFIED = 1,
	/** Nothing is lost: data that had arrived before, packets for another host, a copy for a
	 *  packet socket, data that a closed socket had not read, or parts of a buffer whose drop is
	 *  counted. */
	NETOBS_DROP_BENIGN = 2,
	NETOBS_DROP_KINDS
};

/** The part of the kernel that dropped it, by the reason, or else by the function;
 *  netobs_drop.layer. */
enum netobs_drop_layer {
	NETOBS_DROP_LAYER_OTHER = 0,
	NETOBS_DROP_LAYER_SOCKET = 1, /**< a full buffer, a filter, or no socket */
	NETOBS_DROP_LAYER_TCP = 2,
	NETOBS_DROP_LAYER_UDP = 3,
	NETOBS_DROP_LAYER_ICMP = 4,
	NETOBS_DROP_LAYER_IP = 5, /**< IPv4, IPv6 and routes */
	NETOBS_DROP_LAYER_NETFILTER = 6,
	NETOBS_DROP_LAYER_NEIGHBOUR = 7, /**< ARP, neighbour discovery */
	NETOBS_DROP_LAYER_BRIDGE = 8,
	NETOBS_DROP_LAYER_TUNNEL = 9,
	NETOBS_DROP_LAYER_TC = 10, /**< queueing disciplines, filters and actions */
	NETOBS_DROP_LAYER_XDP = 11,
	NETOBS_DROP_LAYER_DEVICE = 12, /**< interfaces, and what is below IP */
	NETOBS_DROP_LAYER_XFRM = 13,   /**< IPsec: its policies and states */
	NETOBS_DROP_LAYER_CAN = 14, /**< frames of a controller area network */
	NETOBS_DROP_LAYERS
};

/** Bits of netobs_drop.record.has. */
enum netobs_drop_field {
	NETOBS_DROP_HAS_ADDRS = 1 << 0,	 /**< src, dst, protocol */
	NETOBS_DROP_HAS_PORTS = 1 << 1,	 /**< src_port, dst_port */
	NETOBS_DROP_HAS_REASON = 1 << 2, /**< reason, cause: Linux 5.17 */
	/** Packets of several flows, because there were too many: nothing but the place and the reason. */
	NETOBS_DROP_HAS_REST = 1 << 3,
	NETOBS_DROP_HAS_ORIG =
		1 << 4, /**< orig_src, orig_dst: NAT has changed the packet */
	NETOBS_DROP_HAS_ORIG_PORTS = 1 << 5 /**< orig_src_port, orig_dst_port */
};

/** Enough for any drop in JSON: netobs_record_json(). */
#define NETOBS_DROP_JSON_MAX 2048

/** Packets of a flow that were dropped for one reason, in one place of the kernel, in an
 *  interval: NETOBS_RECORD_DROP. */
struct netobs_drop {
	struct netobs_record record; /**< its time is the end of the interval */

	uint8_t src[16]; /**< IPv4 as ::ffff:a.b.c.d; of a tunnel, the outer addresses */
	uint8_t dst[16];
	uint16_t src_port;
	uint16_t dst_port; /**< of ICMP: type << 8 | code */
	uint16_t ethertype; /**< 0: the packet had no header of the network layer yet */
	uint8_t protocol; /**< of IP */
	uint8_t kind;	  /**< enum netobs_drop_kind */
	uint8_t layer;	  /**< enum netobs_drop_layer */
	/** Why there are no addresses: 1 + enum netobs_unparsed_reason; 0: there are, or the packet had none yet */
	uint8_t unparsed;
	uint8_t reserved[2];

	uint32_t reason; /**< enum skb_drop_reason of this kernel; numbers differ by kernel */
	uint32_t offset; /**< in function, in bytes: where the drop was called */
	/** The interface that the kernel has for the packet when it drops it: before routing, the
	 *  one that it came in by; then, the one that it leaves by. 0: none. */
	uint32_t ifindex;
	uint32_t netns_inode; /**< of that interface, or of the socket; 0: not known */

	uint64_t packets; /**< on the wire: segments */
	uint64_t bytes; /**< from the IP header on; of a packet that was not parsed, all that was left of it */
	int64_t last_ns; /**< when the last one was dropped, ns since 1970 UTC */

	char cause[64]; /**< name of the reason, from the kernel: "SKB_DROP_REASON_NO_SOCKET" */
	char function[64]; /**< function of the kernel that dropped it; "": not known */
	char interface[16]; /**< "": not known */

	/** If NAT has changed the packet: the tuple with which it came into the network namespace. */
	uint8_t orig_src[16];
	uint8_t orig_dst[16];
	uint16_t orig_src_port;
	uint16_t orig_dst_port; /**< of ICMP: type << 8 | code */
	uint8_t reserved2[4];
};

/** Options for netobs_drops_new(). Zero means "default" for every field. */
struct netobs_drops_opts {
	size_t sz; /**< sizeof(struct netobs_drops_opts) */

	uint32_t interval_ms; /**< between reports; default 5000, at least 100 */
	uint32_t reserved;    /**< 0 */
	/** Features to do without, as in struct netobs_opts; only 1 << NETOBS_FEATURE_DROP_REASONS matters. */
	uint64_t disable_features;

	/** Drops of an interval: a struct netobs_drop, valid during the call only. */
	void (*on_record)(const struct netobs_record *record, void *user);
	/** All drops of an interval have been delivered; NULL: not called. */
	void (*on_interval)(void *user);
	/** A log line, without newline; NULL: nothing is logged. */
	void (*on_log)(int level, const char *message, void *user);
	void *user; /**< passed back to every callback */

	/** Buffer for the reason why netobs_drops_new() failed; NULL: none. */
	char (*error)[NETOBS_ERROR_MAX];
	/** pcap-filter(7): drops to report; NULL: all. Of a packet, its addresses, ports and protocol
	 *  are known, and of ICMP the type and code, so nothing else matters, and inner is
	 *  refused. Drops without addresses match no filter. */
	const char *filter;
};

/** Totals since the start. */
struct netobs_drops_stats {
	size_t sz; /**< sizeof(struct netobs_drops_stats), set by the caller */
	uint64_t packets[NETOBS_DROP_KINDS]; /**< delivered to on_record, by kind */
	uint64_t bytes[NETOBS_DROP_KINDS];
	/** Packets that are in no record, because the tables were full, or had no room for what the filter judges. */
	uint64_t lost_packets;
	uint64_t lost_bytes;
	/** Buffers that the kernel dropped while programs could not run: of unknown kind and size. */
	uint64_t missed;
	uint64_t others; /**< buffers that are no packets: of netlink, of Unix sockets */
	uint8_t has_reasons; /**< the kernel states them */
	uint8_t reserved[7];
	uint64_t filtered_packets; /**< of any kind, not matched by netobs_drops_opts.filter */
	uint64_t filtered_bytes;
};

/**
 * Make an observer of drops. Checks the options; touches nothing in the kernel.
 *
 * netobs_start() needs CAP_BPF and CAP_PERFMON (or root). netobs_dispatch() delivers the drops of the last interval, for
 * some milliseconds. on_record may call netobs_stop(), netobs_drops_stats_get() and netobs_last_error(), and nothing else
 * of this observer. netobs_free() discards drops that were not delivered.
 *
 * @param opts  copied, and may go away afterwards; on_record must be set
 * @param ret_drops  yours: netobs_free()
 * @return 0; -EINVAL: an option is wrong, the error text names it; -E2BIG: the filter is
 *         too long; -ENOMEM
 */
NETOBS_API int netobs_drops_new(const struct netobs_drops_opts *opts,
				struct netobs **ret_drops);

/**
 * Change the time between reports: the next one comes after @p interval_ms. Counts are not reset.
 *
 * @param interval_ms  0: the default; else at least 100
 * @return 0; -EINVAL: @p drops is NULL, or @p interval_ms is wrong
 */
NETOBS_API int netobs_drops_interval_set(struct netobs *drops,
					 uint32_t interval_ms);

/**
 * Read the totals. What is dropped and not delivered yet is in none of them.
 *
 * @param ret_stats  the caller sets sz; filled up to that size, and sz becomes the
 *                   number of bytes filled
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_drops_stats_get(const struct netobs *drops,
				      struct netobs_drops_stats *ret_stats);

/** The name of a kind: "loss", "unspecified", "benign"; NULL beyond the last. */
NETOBS_API const char *netobs_drop_kind_name(unsigned int kind);

/** The name of a layer: "tcp", "netfilter" ...; NULL beyond the last. */
NETOBS_API const char *netobs_drop_layer_name(unsigned int layer);

#ifdef __cplusplus
}
#endif

#endif
