/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file services.h
 * The service map: which client uses which service, from flows and sessions of any number of hosts.
 * Each conversation counts once, however many hosts and sides of a NAT report it: in
 * each direction by the host that has seen most of its packets. Memory for edges is bounded, and their
 * sum is exact. netobsctl map --services uses it.
 *
 * A map is independent of contexts: records may come from anywhere. One thread at a time may use it.
 */
#ifndef NETOBS_SERVICES_H
#define NETOBS_SERVICES_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/record.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_services;

/** Size of the name of a host, with its NUL; longer ones are cut. */
#define NETOBS_SERVICES_HOST_MAX 256

/** Lines that netobs_services_add_json() keeps hashes of; later ones are all new. */
#define NETOBS_SERVICES_LINES_MAX 33554432

/** Enough for any edge in JSON, with its NUL. */
#define NETOBS_EDGE_JSON_MAX 8192

/** What a row is; netobs_edge.type. */
enum netobs_edge_type {
	NETOBS_EDGE = 0,	/**< a client and a service */
	NETOBS_EDGE_OTHERS = 1, /**< the sum of all edges without a row */
	NETOBS_EDGE_TOTAL = 2	/**< the sum of all edges */
};

/** Bits of netobs_edge.has. */
enum netobs_edge_field {
	/** connections, refused, resets, timeouts, failed: 0 is a count, and not unknown */
	NETOBS_EDGE_HAS_SESSIONS = 1 << 0
};

/** How the service is known; netobs_edge.evidence is the least certain one of its conversations. */
enum netobs_edge_evidence {
	NETOBS_EDGE_HANDSHAKE = 0, /**< a session, or the flags of a packet */
	NETOBS_EDGE_ANSWERS = 1,   /**< its first datagram came second */
	NETOBS_EDGE_ACCEPTS = 2,   /**< it has accepted another conversation */
	NETOBS_EDGE_PORT = 3	   /**< it has the lower port, or address */
};

/**
 * A client and the service that it uses, with the addresses from before all NAT. Arrays of packets and
 * bytes have those to the service, then those to the client; arrays of names have the client's,
 * then the service's, NULL where none is known, or several are. Library-allocated, read-only, grows at the
 * end.
 */
struct netobs_edge {
	size_t sz;    /**< sizeof(struct netobs_edge) */
	uint32_t has; /**< enum netobs_edge_field, or-ed */
	uint32_t type; /**< enum netobs_edge_type; sums have no addresses and names */
	uint8_t client[16];  /**< IPv4 as ::ffff:a.b.c.d */
	uint8_t service[16]; /**< IPv4 as ::ffff:a.b.c.d */
	uint16_t port;	     /**< of the service; 0: the protocol has none */
	uint8_t proto;	     /**< of IP */
	uint8_t evidence;    /**< enum netobs_edge_evidence */
	uint32_t hosts; /**< most hosts that have reported one of the conversations */
	uint64_t edges; /**< how many are in this sum */
	int64_t start_ms; /**< of the first packet, ms since 1970 UTC; 0: not known */
	int64_t end_ms;		/**< of the last packet */
	uint64_t conversations; /**< connections, or packets of one tuple */
	uint64_t packets[2];	/**< to the service, to the client */
	uint64_t bytes[2];    /**< to the service, to the client, at layer 3 */
	uint64_t retransmits; /**< of TCP, both ways */
	uint64_t rtt_ns; /**< mean round-trip time between both ends; 0: not known */
	uint64_t rtt_samples; /**< that this is of */
	uint64_t response_ns; /**< mean time from a request to its answer; 0: not known */
	uint64_t responses;	   /**< that this is of */
	uint64_t connections;	   /**< that have ended; of these: */
	uint64_t refused;	   /**< by a RST or by ICMP */
	uint64_t resets;	   /**< by a RST of either end */
	uint64_t timeouts;	   /**< without an answer */
	uint64_t failed;	   /**< for another reason */
	uint64_t repeated_packets; /**< in reports of hosts, and not in @p packets */
	const char *counted_by[2]; /**< host that has reported most packets of this direction */
	const char *processes[2]; /**< of the client, of the service */
	const char *workloads[2]; /**< "NAMESPACE/POD", or the name of a container in no pod */
	uint64_t missing_bytes; /**< at most so many more of the edge are in the others; 0: it is complete */
	uint64_t lost_bytes; /**< of TCP's data, between the hosts that reported it, both ways */
	uint64_t loss_conversations; /**< of which this is known: netobsctl-map(8), SERVICES */
};

/** Options for netobs_services_new(). Zero means "default" for every field. */
struct netobs_services_opts {
	size_t sz; /**< sizeof(struct netobs_services_opts) */
	uint32_t max_edges; /**< from 2 to 2^30; default 65536. Beyond it, those with fewest bytes are
			     *   added to one sum. */
	/** 1: sessions are added, too, so that no connection is a count, also before the first one. */
	uint32_t has_sessions;
};

/** Totals of all that was added. */
struct netobs_services_stats {
	size_t sz; /**< sizeof(struct netobs_services_stats), set by the caller */
	uint64_t records;	   /**< that count */
	uint64_t other_records;	   /**< of types that it does not use */
	uint64_t repeated_records; /**< lines that a host had written before */
	uint64_t unchecked_records; /**< beyond NETOBS_SERVICES_LINES_MAX: they may have come before */
	uint64_t flows;	   /**< of the records */
	uint64_t sessions; /**< of the records */
	uint64_t sampled;  /**< flows of which not all packets were counted */
	uint64_t repeated_packets; /**< that other hosts have reported */
	/** Packets with tuples that a NAT gave to several conversations: they count as its host reports them. */
	uint64_t shared_packets;
	uint64_t hosts; /**< that have reported something */
	int64_t start_ms; /**< of the first flow, ms since 1970 UTC; 0: not known */
	int64_t end_ms; /**< of the last flow */
};

/**
 * @param opts          NULL: all defaults
 * @param ret_services  the caller frees them by netobs_services_free()
 * @return 0; -EINVAL: an option is wrong, or @p ret_services is NULL; -ENOMEM
 */
NETOBS_API int netobs_services_new(const struct netobs_services_opts *opts,
				   struct netobs_services **ret_services);

/**
 * Add a record.
 *
 * @param host    that reports it; NULL: this host
 * @param record  a flow or a session; others are counted, and change nothing else
 * @return 0; -EINVAL: an argument is NULL, or no record; -ENOMEM
 */
NETOBS_API int netobs_services_add(struct netobs_services *services,
				   const char *host,
				   const struct netobs_record *record);

/**
 * Add a flow, a session or a mapping in the JSON of netobs. What a host has written twice counts once.
 *
 * @param host   of records that name none (AgentIP, HostName, HostId); NULL: this host
 * @param json   one object; NUL-terminated
 * @param error  gets the reason of -EINVAL: "SrcAddr is no address"
 * @param size   of @p error; may be 0
 * @return 1; 0: it is of another type, or came before; -EINVAL: it is no such record, or an argument is
 *         NULL; -ENOMEM
 */
NETOBS_API int netobs_services_add_json(struct netobs_services *services,
					const char *host, const char *json,
					char *error, size_t size);

/**
 * Find the conversations of all reports since the last call, and add them to their edges. Rows are
 * the edges with most bytes, the sum of all others, if there are any, and the total. In the first call
 * after netobs_services_clear(), each edge is complete; after later ones, an edge that was among
 * the others before has netobs_edge.missing_bytes.
 *
 * @param most  edges with a row, at most; 0: all
 * @return the number of rows; -EINVAL: @p services is NULL; -ENOMEM: some conversations are missing
 */
NETOBS_API int netobs_services_rows(struct netobs_services *services,
				    uint64_t most);

/**
 * A row of the last netobs_services_rows(), the first one being 0; NULL: there are not so many, or
 * netobs_services_clear() was called since.
 * Valid until the next call, its names until a record is added.
 */
NETOBS_API const struct netobs_edge *
netobs_services_row(struct netobs_services *services, size_t i);

/** Remove all edges and their sums. What is known of services and of NAT stays. NULL is fine. */
NETOBS_API void netobs_services_clear(struct netobs_services *services);

/**
 * Read the totals.
 *
 * @param ret_stats  the caller sets sz; filled up to that size, and sz becomes the number of bytes filled
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_services_stats_get(const struct netobs_services *services,
					 struct netobs_services_stats *ret_stats);

/** Free the map. NULL is fine. */
NETOBS_API void netobs_services_free(struct netobs_services *services);

/**
 * Write a row as one JSON object, no newline: netobsctl-map(8), SERVICES.
 *
 * @param edge         a row
 * @param time_ms      its TimeMs, ms since 1970 UTC
 * @param duration_ms  its DurationMs
 * @param buf          filled and NUL-terminated
 * @param size         of @p buf
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an argument is NULL, sz of
 *         @p edge is too small, or its type is none of enum netobs_edge_type
 */
NETOBS_API int netobs_edge_json(const struct netobs_edge *edge, int64_t time_ms,
				int64_t duration_ms, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
