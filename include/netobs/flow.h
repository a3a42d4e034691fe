/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file flow.h
 * The flow record. Library-allocated, read-only, grows at the end: test a
 * field's presence by its `has` bit, not by its value.
 */
#ifndef NETOBS_FLOW_H
#define NETOBS_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/record.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why a record was made: IPFIX flowEndReason, RFC 5102 5.11.3. */
enum netobs_end_reason {
	NETOBS_END_IDLE = 1,	 /**< no packets for the idle timeout */
	NETOBS_END_ACTIVE = 2,	 /**< still active: a report on the way */
	NETOBS_END_DETECTED = 3, /**< TCP FIN or RST was seen */
	NETOBS_END_FORCED = 4,	 /**< the observation ends (shutdown) */
	NETOBS_END_RESOURCES = 5 /**< the flow had to make room */
};

/**
 * Directions at an interface. Options may be both; a record's point is one of the others. In
 * JSON, protobuf and IPFIX (flowDirection, RFC 5102 5.11.2), 0 is ingress and 1 egress.
 */
enum netobs_direction {
	NETOBS_BOTH = 0,
	NETOBS_INGRESS = 1, /**< received by the interface */
	NETOBS_EGRESS = 2,  /**< sent by the interface */
	NETOBS_DIRECTIONS
};

/** Encapsulation that the flow was found in. */
enum netobs_tunnel {
	NETOBS_TUNNEL_NONE = 0,
	NETOBS_TUNNEL_VXLAN = 1,  /**< RFC 7348 */
	NETOBS_TUNNEL_GENEVE = 2, /**< RFC 8926 */
	NETOBS_TUNNEL_GRE = 3,	  /**< RFC 2784, 2890 */
	NETOBS_TUNNEL_IPIP = 4,	  /**< IP in IP: RFC 2003, 2473, 4213 */
	NETOBS_TUNNEL_GTPU = 5,	  /**< 3GPP TS 29.281 */
	NETOBS_TUNNEL_SRV6 = 6,	  /**< segment routing: RFC 8754, 8986 */
	NETOBS_TUNNEL_ERSPAN = 7  /**< draft-foschiano-erspan-03 */
};

/** Bits of netobs_flow.tcp_combined: flags that one packet had together. */
enum netobs_tcp_combined {
	NETOBS_TCP_SYN_ACK = 1 << 0, /**< the answer to a SYN: a server's flow */
	NETOBS_TCP_FIN_ACK = 1 << 1,
	NETOBS_TCP_RST_ACK = 1 << 2
};

/** The unit of sampling: netobs_opts.sampling, netobs_flow.sampling. */
enum netobs_sampling {
	/** Packets, at random: a record counts those sampled, of any flow. */
	NETOBS_SAMPLE_PACKETS = 0,
	/** Flows: a record counts all packets of its flow, and others have none. */
	NETOBS_SAMPLE_FLOWS = 1
};

/** Bits of netobs_flow.has: which of the optional fields are known. */
enum netobs_flow_field {
	NETOBS_HAS_PORTS = 1 << 0, /**< src_port, dst_port */
	NETOBS_HAS_ICMP = 1 << 1,  /**< icmp_type, icmp_code */
	/** tcp_flags, tcp_combined; not where all headers were cut before them */
	NETOBS_HAS_TCP = 1 << 2,
	NETOBS_HAS_MAC = 1 << 3,	 /**< src_mac, dst_mac, l2_bytes */
	NETOBS_HAS_VLAN = 1 << 4,	 /**< vlan_id */
	NETOBS_HAS_OUTER_VLAN = 1 << 5,	 /**< outer_vlan_id */
	NETOBS_HAS_TUNNEL = 1 << 6,	 /**< tunnel */
	NETOBS_HAS_VNI = 1 << 7,	 /**< vni */
	NETOBS_HAS_OUTER_PORTS = 1 << 8, /**< outer_src_port, outer_dst_port */
	NETOBS_HAS_OUTER = 1 << 9,	 /**< outer_src, outer_dst */
	NETOBS_HAS_FLOW_LABEL = 1 << 10, /**< flow_label */
	NETOBS_HAS_SAMPLING = 1 << 11,	 /**< sampling, sampling_mode */
	/** rtt_ns, rtt_min_ns, rtt_max_ns, rtt_samples */
	NETOBS_HAS_RTT = 1 << 12,
	NETOBS_HAS_HANDSHAKE_RTT = 1 << 13, /**< handshake_rtt_ns, path_rtt_ns */
	/** retransmits, retransmitted_bytes, out_of_order, late_unknown, duplicate_acks, zero_windows */
	NETOBS_HAS_TCP_HEALTH = 1 << 14,
	/** app_latency_ns, app_latency_min_ns, app_latency_max_ns */
	NETOBS_HAS_APP_LATENCY = 1 << 15,
	/** response_time_ns, response_time_min_ns, response_time_max_ns, app_responses */
	NETOBS_HAS_RESPONSE_TIME = 1 << 16,
	NETOBS_HAS_XLAT = 1 << 17,	   /**< xlat_src, xlat_dst */
	NETOBS_HAS_XLAT_PORTS = 1 << 18,   /**< xlat_src_port, xlat_dst_port */
	NETOBS_HAS_ORIG = 1 << 19,	   /**< orig_src, orig_dst */
	NETOBS_HAS_ORIG_PORTS = 1 << 20,   /**< orig_src_port, orig_dst_port */
	NETOBS_HAS_ZONE = 1 << 21,	   /**< zone_id */
	NETOBS_HAS_CONVERSATION = 1 << 22, /**< conversation_id */
	NETOBS_HAS_DROPS = 1 << 23, /**< drop_packets, drop_bytes: there are some */
	NETOBS_HAS_DROP_REASON = 1 << 24 /**< drop_reason, drop_cause */
};

/** One place a flow was seen at. Grows at the end: see netobs_flow.point_size. */
struct netobs_point {
	uint32_t ifindex;     /**< in its network namespace */
	uint32_t netns_inode; /**< of the namespace: /proc/PID/ns/net */
	uint8_t direction;    /**< NETOBS_INGRESS or NETOBS_EGRESS */
	uint8_t reserved[7];
	const char *name; /**< of the interface; its last one when it is gone */
};

/**
 * One flow record. Packets, bytes and l2_bytes count what came since the
 * flow's previous record; packets are packets on the wire, also where the
 * kernel handles several at once (GSO, GRO). With sampling, they count the sampled packets
 * only: sums over records, times `sampling`, estimate the traffic.
 * An observing context's start_ns is exact if it is even. If it is odd, the packet came up to a tick of
 * the kernel, 10 ms at most, later.
 */
struct netobs_flow {
	/** The header that all records have, and its members by their names here. */
	NETOBS_UNNAMED union {
		struct netobs_record record;
		NETOBS_UNNAMED struct {
			size_t sz;	  /**< sizeof(struct netobs_flow) */
			uint32_t has;	  /**< enum netobs_flow_field, or-ed */
			uint32_t type;	  /**< NETOBS_RECORD_FLOW, which is 0 */
			int64_t start_ns; /**< first packet, ns since 1970 UTC */
		};
	};
	int64_t end_ns;	   /**< last packet */
	uint64_t packets;  /**< IPFIX packetDeltaCount */
	uint64_t bytes;	   /**< from the IP header on: IPFIX octetDeltaCount */
	uint64_t l2_bytes; /**< whole frames without FCS */

	uint8_t src[16]; /**< network byte order; IPv4 as ::ffff:a.b.c.d */
	uint8_t dst[16];
	uint16_t src_port;
	uint16_t dst_port;
	uint16_t ethertype; /**< 0x0800 or 0x86dd */
	uint16_t tcp_flags; /**< IPFIX tcpControlBits: of all packets, or-ed */
	uint8_t proto;	    /**< IANA protocol number */
	uint8_t icmp_type;
	uint8_t icmp_code;
	uint8_t dscp;	  /**< RFC 2474; of the last packet */
	uint8_t ecn_seen; /**< RFC 3168: bit n set: codepoint n occurred */
	uint8_t ttl_min;  /**< TTL or hop limit */
	uint8_t ttl_max;
	uint8_t end_reason; /**< enum netobs_end_reason */

	uint8_t src_mac[6]; /**< at the first of the points that have addresses */
	uint8_t dst_mac[6];
	/** innermost 802.1Q tag; in a tunnel, of the frame inside */
	uint16_t vlan_id;
	/** outermost tag when there are several; in a tunnel, outside */
	uint16_t outer_vlan_id;

	uint8_t outer_src[16]; /**< the tunnel's ends */
	uint8_t outer_dst[16];
	uint16_t outer_src_port;
	uint16_t outer_dst_port;
	uint32_t vni;	/**< VXLAN, Geneve: network identifier; GRE: key;
			 *   GTP-U: TEID; ERSPAN II, III: session */
	uint8_t tunnel; /**< enum netobs_tunnel */
	/** enum netobs_tcp_combined, or-ed: flags that single packets had together;
	 *  tcp_flags has those of all packets */
	uint8_t tcp_combined;
	uint8_t sampling_mode; /**< enum netobs_sampling */
	uint8_t reserved;

	uint32_t n_points;
	uint32_t point_size; /**< bytes from one of the points to the next */
	/** Ingress first, then by ifindex: netobs_flow_point(). */
	const struct netobs_point *points;

	/** RFC 6437; of the first packet in this record */
	uint32_t flow_label;
	/** one packet or flow of so many was counted; 1: each, though others are sampled */
	uint32_t sampling;

	/*
	 * With netobs_opts.rtt, of TCP: connection.h says how each is measured. Flows of
	 * echo requests (ICMP, ICMPv6) have rtt_ns, rtt_min_ns, rtt_max_ns and rtt_samples: a
	 * sample is the time from a request to the reply with its identifier and sequence number.
	 * Between two addresses, four requests per direction are timed at once; an unanswered
	 * request is awaited for 10 s. Times are in nanoseconds. Counts cover the packets since
	 * the flow's previous record.
	 */
	uint64_t rtt_ns; /**< from the first of the points to dst and back; smoothed */
	uint64_t rtt_min_ns;
	uint64_t rtt_max_ns;
	uint64_t handshake_rtt_ns;
	uint64_t path_rtt_ns; /**< without what dst waits: netobs_connection_way.path_rtt_ns */
	/** from a request of src, the client, to the answer of dst; smoothed */
	uint64_t response_time_ns;
	uint64_t response_time_min_ns;
	uint64_t response_time_max_ns;
	uint64_t app_latency_ns; /**< what dst takes of that: netobs_connection_way.app */
	uint64_t app_latency_min_ns;
	uint64_t app_latency_max_ns;
	uint64_t retransmitted_bytes;
	uint64_t late_unknown; /**< segments: of retransmits or out_of_order, it is not known which */
	uint32_t rtt_samples;
	uint32_t app_responses;
	uint32_t retransmits; /**< segments */
	uint32_t out_of_order;
	uint32_t duplicate_acks;
	uint32_t zero_windows;

	/*
	 * With NETOBS_PROCESSES: the processes that have the sockets which the flow comes from
	 * and goes to, if these are on this host. Valid as long as the record. NULL: none is known.
	 */
	const struct netobs_process *src_process;
	const struct netobs_process *dst_process;

	/*
	 * With NETOBS_NAT: xlat, the addresses that packets of the flow get behind the interface where they
	 * came in, and orig, those that they had before NAT, where they were seen leaving. Not known for
	 * flows in tunnels that do not end here, and where several translations were possible.
	 */
	uint8_t xlat_src[16]; /**< of IPv4 ::ffff:a.b.c.d, as src */
	uint8_t xlat_dst[16];
	uint8_t orig_src[16];
	uint8_t orig_dst[16];
	uint16_t xlat_src_port;
	uint16_t xlat_dst_port;
	uint16_t orig_src_port;
	uint16_t orig_dst_port;
	uint16_t zone_id; /**< of conntrack, at that translation */
	uint16_t reserved2[3];
	/** Equal for both directions of a conversation, before and after each NAT of this host. */
	uint64_t conversation_id;

	/*
	 * With NETOBS_DROPS: packets of the flow that this kernel dropped since the flow's previous record.
	 * They are in @p packets if they were observed before. NETOBS_DROP_BENIGN (drop.h) ones are left out.
	 */
	uint64_t drop_packets;
	uint64_t drop_bytes; /**< from the IP header on */
	uint32_t drop_reason; /**< of the last one: enum skb_drop_reason of that kernel */
	uint32_t reserved3;
	char drop_cause[48]; /**< the name of that: "SKB_DROP_REASON_NO_SOCKET" */
};

/**
 * One of a record's points. Index `points` with it rather than by hand: a later
 * library has larger points than the program was compiled for.
 *
 * @return point @p i, valid as long as the record; NULL beyond the last
 */
NETOBS_API const struct netobs_point *
netobs_flow_point(const struct netobs_flow *flow, uint32_t i);

/**
 * Copy a record with all that it points to, to keep it beyond the callback or to
 * pass it to another thread. The copy is one allocation.
 *
 * @param flow      the record, also one that the program made: sz, and where it
 *                  has points point_size, are set
 * @param ret_flow  the copy, yours: netobs_flow_free(), or free(3)
 * @return 0; -EINVAL: an argument is NULL, or sz or point_size is too small;
 *         -ENOMEM
 */
NETOBS_API int netobs_flow_dup(const struct netobs_flow *flow,
			       struct netobs_flow **ret_flow);

/** Free what netobs_flow_dup() returned. NULL is fine. */
NETOBS_API void netobs_flow_free(struct netobs_flow *flow);

/** Enough for any address as text, with its NUL. */
#define NETOBS_ADDR_STR_MAX 46

/**
 * Write an address of a record as text: "192.0.2.1", and IPv6 as in RFC 5952.
 *
 * @param addr  16 bytes in network byte order; IPv4 as ::ffff:a.b.c.d
 * @param buf   filled and NUL-terminated
 * @param size  of @p buf
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an
 *         argument is NULL
 */
NETOBS_API int netobs_addr_str(const uint8_t addr[16], char *buf, size_t size);

/** Enough for any record of up to 16 points in JSON. */
#define NETOBS_FLOW_JSON_MAX 18432

/**
 * Write a record as one JSON object with NetObserv's field names, no newline.
 *
 * @param flow  the record, also one that the program made: see netobs_flow_dup()
 * @param buf   filled and NUL-terminated
 * @param size  of @p buf
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an
 *         argument is NULL, or sz or point_size is too small
 */
NETOBS_API int netobs_flow_json(const struct netobs_flow *flow, char *buf,
				size_t size);

#ifdef __cplusplus
}
#endif

#endif
