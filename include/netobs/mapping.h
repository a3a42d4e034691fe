/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file mapping.h
 * Mappings: the addresses that NAT of this host gives a conversation, as entries of the kernel's table
 * of connections (conntrack) have them. Records say when one begins and ends: RFC 8158.
 *
 * A context has them with NETOBS_NAT. It learns of a mapping when a packet of it leaves by an
 * observed interface, and of older ones from the kernel's table, which it lists
 * once it has started, for each network namespace that it observes. Connections without NAT are no
 * mappings.
 *
 * Where a BPF program of others replaces the address that a process asks for when it connects, or
 * sends a datagram, the socket has a mapping, too, in any namespace of the host: dst is what the
 * process asked for, and post_dst what packets have. It has no interfaces and no zone, begins when the
 * socket connects, and ends with the socket. The kernel needs NETOBS_FEATURE_CONNECT.
 *
 * A mapping has a tuple for each direction, before translation and after it:
 *
 *	original, before	src:src_port > dst:dst_port
 *	original, after		post_src:post_src_port > post_dst:post_dst_port
 *	reply, before		post_dst:post_dst_port > post_src:post_src_port
 *	reply, after		dst:dst_port > src:src_port
 *
 * A mapping ends when the kernel no longer has its entry. netobs asks for the entry 5 seconds after the
 * first packet, then when the entry would time out without further packets, but each minute at least. So
 * the end is noticed within about two seconds of a time-out, and within a minute of a deletion; with
 * 262144 mappings up to 16 seconds later. Up to 1,000 entries are asked for per second, whatever the
 * number of connections is; if more mappings begin, their ends are noticed later. If the kernel replaces
 * an entry by another one with the same addresses and ports between two questions, both are one mapping.
 * Echo requests between two addresses are one mapping, too: their identifiers are not part of it.
 *
 * An ended mapping is known for another minute, if there is room. 262144 are known at most. A new one then
 * takes the place of the one that ended first; else of the oldest without an answer, or without a
 * further packet after the answer; or, if three quarters of the places have mappings that went on, of the
 * one without a packet for longest, a minute at least. If the kernel does not report ends, netobs also
 * forgets mappings without a packet for a minute, although they may go on.
 */
#ifndef NETOBS_MAPPING_H
#define NETOBS_MAPPING_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/record.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs;

/** The event that is reported; netobs_mapping.event. */
enum netobs_mapping_event {
	NETOBS_MAPPING_KNOWN = 0, /**< nothing: the program asked for the mapping */
	NETOBS_MAPPING_BEGIN =
		1, /**< its first packet came, or the kernel's list has it */
	NETOBS_MAPPING_END = 2 /**< see netobs_mapping.state */
};

/** The state of a mapping; netobs_mapping.state. */
enum netobs_mapping_state {
	NETOBS_MAPPING_ACTIVE = 0, /**< the kernel has it, as far as is known */
	NETOBS_MAPPING_ENDED = 1,  /**< the kernel no longer has it */
	/** The mapping made room, or its namespace is not observed any more: it may go on. */
	NETOBS_MAPPING_FORGOTTEN = 2
};

/** The translated ends of the original direction; netobs_mapping.translated. */
enum netobs_mapping_translated {
	NETOBS_MAPPING_SOURCE = 1 << 0, /**< the source (SNAT, masquerading) */
	NETOBS_MAPPING_DESTINATION =
		1 << 1 /**< the destination (DNAT, redirection) */
};

/** Bits of netobs_mapping.record.has. */
enum netobs_mapping_field {
	NETOBS_MAPPING_HAS_PORTS = 1 << 0, /**< the four ports */
	NETOBS_MAPPING_HAS_ZONE = 1 << 1,  /**< zone: the kernel has zones */
	/** start_ns: unknown if it is, or may be, older than the kernel's list, unless the kernel
	 *  notes when its entries begin (net.netfilter.nf_conntrack_timestamp) */
	NETOBS_MAPPING_HAS_START = 1 << 2,
	NETOBS_MAPPING_HAS_LAST = 1 << 3, /**< last_ns: a packet of it was seen */
	NETOBS_MAPPING_HAS_END = 1 << 4	  /**< end_ns */
};

/** Enough for any mapping in JSON: netobs_record_json(). */
#define NETOBS_MAPPING_JSON_MAX 2048

/** A mapping: NETOBS_RECORD_MAPPING. */
struct netobs_mapping {
	/** time_ns: when it began, its end was noticed, or the program asked for it */
	struct netobs_record record;

	/** Tuple of the original direction, that of the first packet. IPv4 is ::ffff:a.b.c.d. */
	uint8_t src[16];
	uint8_t dst[16];
	uint8_t post_src[16]; /**< the same after translation */
	uint8_t post_dst[16];
	uint16_t src_port;
	uint16_t dst_port;
	uint16_t post_src_port;
	uint16_t post_dst_port;

	uint16_t ethertype; /**< 0x0800: IPv4, 0x86dd: IPv6 */
	uint16_t zone;	    /**< of conntrack */
	uint8_t protocol;   /**< of IP: 6 is TCP */
	uint8_t event;	    /**< enum netobs_mapping_event */
	/** natEvent of the event, as IANA numbers them: 4, NAT44 session create; 5, NAT44 session
	 *  delete; between IPv6 addresses, for which there are none of these, 1, NAT translation
	 *  create, and 2, NAT translation delete; 0: there was no event */
	uint8_t nat_event;
	uint8_t state;	    /**< enum netobs_mapping_state */
	uint8_t translated; /**< bits of enum netobs_mapping_translated */
	uint8_t reserved[3];

	/** Interfaces by which packets of the original direction come in and leave; 0: not known,
	 *  or this host is that end. */
	uint32_t in_ifindex;
	uint32_t out_ifindex;
	uint32_t netns_inode; /**< of the network namespace that translates */
	uint32_t reserved2;
	char in_interface[16]; /**< "": not known */
	char out_interface[16];

	int64_t start_ns; /**< of the first packet, ns since 1970 UTC */
	int64_t last_ns; /**< when a packet was last seen, up to an interval ago */
	int64_t end_ns;		  /**< when it was noticed that it had ended */
	uint64_t conversation_id; /**< as netobs_flow.conversation_id; 0: not known */
};

/**
 * Call @p take for mappings that are known, also those that have ended, for up to 4
 * milliseconds. Those that begin or end between calls may be left out, or come twice.
 *
 * @param ctx     a started context with NETOBS_NAT; by its own thread, also from callbacks
 * @param cursor  0 to begin; set to where the next call goes on
 * @param take    the mapping is valid during the call; event is NETOBS_MAPPING_KNOWN
 * @param user    passed to @p take
 * @return 1: there are more, call again; 0: those were all; -EINVAL: an argument is NULL, or the
 *         context was not started; -ENOTSUP: without NETOBS_NAT
 */
NETOBS_API int netobs_mappings(const struct netobs *ctx, uint64_t *cursor,
			       void (*take)(const struct netobs_mapping *mapping,
					    void *user),
			       void *user);

/**
 * The mappings to find: a tuple, of which a part may be left open. One end alone may be source or
 * destination, because a mapping has tuples of both directions. All zeroes but sz: any mapping.
 */
struct netobs_mapping_query {
	size_t sz; /**< sizeof(struct netobs_mapping_query), set by the caller */
	uint8_t src[16];   /**< all zeroes: any address */
	uint8_t dst[16];   /**< all zeroes: any address */
	uint16_t src_port; /**< 0: any port */
	uint16_t dst_port; /**< 0: any port */
	uint8_t protocol;  /**< 0: any protocol */
	uint8_t reserved[3];
};

/**
 * Read a query: "10.0.0.2:40000 > 192.0.2.1:80/tcp", a tuple of either direction, before or after
 * translation. Ports and the protocol may be left out, and so may one end: "192.0.2.1:80",
 * "[2001:db8::1]:443/udp", "icmp". Prefixes such as "10.0.0.0/24" are refused, and so is the address "::",
 * which no mapping has. "0.0.0.0" means only itself: packets of DHCP clients have it as source, and NAT may
 * translate them.
 *
 * @param ret_query  sz is set by the caller
 * @param error      gets what is wrong; NULL if @p size is 0
 * @param size       of @p error
 * @return 0; -EINVAL: it is wrong, or an argument is NULL
 */
NETOBS_API int netobs_mapping_query_parse(const char *text,
					  struct netobs_mapping_query *ret_query,
					  char *error, size_t size);

/** @return 1: one of the mapping's four tuples is what the query looks for; 0: none is, or an
 *          argument is NULL */
NETOBS_API int netobs_mapping_matches(const struct netobs_mapping *mapping,
				      const struct netobs_mapping_query *query);

/**
 * Call @p take for the mappings that match, those that are in use first. A query with
 * both addresses and, of TCP and UDP, both ports takes microseconds; others up to some tens of
 * milliseconds with 262144 mappings: netobs_mappings() does that in slices.
 *
 * @return how many; -EINVAL, -ENOTSUP: as netobs_mappings()
 */
NETOBS_API int netobs_mappings_find(
	const struct netobs *ctx, const struct netobs_mapping_query *query,
	void (*take)(const struct netobs_mapping *mapping, void *user),
	void *user);

/**
 * Call @p take for the mappings that the kernel has now, without a context: those of its
 * table of connections. Takes about a second for a million connections, with NAT or without.
 * Interfaces and the last packet are not known. Needs CAP_NET_ADMIN, and CAP_SYS_ADMIN for another
 * namespace.
 *
 * @param netns  name of a network namespace, as ip-netns(8) has it, or an absolute path; NULL: the
 *               calling thread's
 * @return how many; -ENOENT: there is no such namespace; -ENOTTY: the path is that of something else;
 *         -EPERM; -EAGAIN: the table changed so fast
 *         that no list of it was complete, @p take has been called for what there was; others from
 *         the kernel, which may have no conntrack
 */
NETOBS_API int netobs_mappings_list(
	const char *netns,
	void (*take)(const struct netobs_mapping *mapping, void *user),
	void *user);

#ifdef __cplusplus
}
#endif

#endif
