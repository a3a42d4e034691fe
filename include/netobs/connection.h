/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file connection.h
 * The health of TCP connections, as their packets show it at an interface: round-trip
 * times, response times and application latency, retransmissions. Measured with netobs_opts.rtt, of every
 * connection that crosses an observed interface, whether or not one of its ends is this host.
 *
 * The data of each end take a way of their own. The round-trip time of a way is the time from
 * data of its sender at the interface to their acknowledgement by the other end, at the same
 * interface: the path between the interface and that end, there and back. So both ways
 * together are the path between the ends. Data that this host sends or forwards leaves at the end of the
 * wait in its queueing disciplines, which the kernel's round-trip time includes. Four timers per direction measure it, which
 * cumulative acknowledgements end; data that was sent again gives no sample (Karn's rule), unless
 * timestamps (RFC 7323) say which segment was acknowledged.
 */
#ifndef NETOBS_CONNECTION_H
#define NETOBS_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/record.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs;

/** The state of a connection, by its packets. */
enum netobs_connection_state {
	NETOBS_CONNECTION_SYN_SENT = 1,	    /**< a SYN, and no answer */
	NETOBS_CONNECTION_SYN_RECEIVED = 2, /**< SYN+ACK, and no ACK of it */
	NETOBS_CONNECTION_ESTABLISHED = 3,  /**< the handshake was completed */
	NETOBS_CONNECTION_CLOSING = 4,	    /**< one end has sent FIN */
	NETOBS_CONNECTION_CLOSED = 5,	    /**< both ends have */
	NETOBS_CONNECTION_RESET = 6	    /**< one end has sent RST */
};

/** Classes of netobs_latency.classes. */
#define NETOBS_LATENCY_CLASSES 16

/** Times of one kind, in nanoseconds, of a resolution of 64. All is 0 without samples. */
struct netobs_latency {
	uint64_t samples; /**< how many */
	uint64_t sum_ns;  /**< of all samples: their mean is sum_ns / samples */
	uint64_t last_ns; /**< the newest sample */
	uint64_t smoothed_ns; /**< each sample is an eighth: RFC 6298, 2.3 */
	uint64_t min_ns; /**< of the last 10 to 20 seconds in which there were any */
	uint64_t max_ns; /**< the largest sample */
	/** Samples below 2^14 ns (16 us) in the first class, below 2^(14 + i) ns in class i,
	 *  and all longer ones in the last. */
	uint64_t classes[NETOBS_LATENCY_CLASSES];
};

/** Statistics of what one end of a connection has sent, since the connection was first seen. */
struct netobs_connection_way {
	/** From data at the interface to their acknowledgement by the other end; for a buffer
	 *  of several segments (GSO, GRO), of its first segment. */
	struct netobs_latency rtt;
	/** Response time, to the server: from the last byte of a request of the client to the
	 *  first byte of the answer, as both pass the interface. Only where the ends speak in
	 *  turn: an answer begins after all data before it was acknowledged. All of these three
	 *  are without samples where the client is not known. */
	struct netobs_latency response;
	/** Application latency, to the server: what the server takes itself of the response
	 *  times. The way from the interface to the server and back is left out: the least
	 *  round-trip time that is known, of the handshake and of the last 10 to 20 seconds.
	 *  Without samples if that is not known: without the handshake, where each
	 *  acknowledgement may have waited for the answer. Its classes are all 0. */
	struct netobs_latency app;
	/** Think time, to the client: from the last byte of an answer of the server to the first
	 *  byte of the client's next request, as both pass the interface. */
	struct netobs_latency think;
	/** From this end's SYN, or SYN+ACK, to its acknowledgement; 0: not seen. */
	uint64_t handshake_rtt_ns;
	/** From the interface to the other end and back, without what that end waits before it
	 *  acknowledges: the least of handshake_rtt_ns and of the round-trip times of the last 10
	 *  to 20 seconds; 0: the handshake was not seen. */
	uint64_t path_rtt_ns;
	uint64_t data_bytes; /**< of data, each once, without headers */
	uint64_t peak_bytes_per_s; /**< of data, in the best of all windows of 100 ms */
	/** Segments with data that had passed this interface before: it was lost behind it, or
	 *  late, or only its acknowledgement was lost. */
	uint64_t retransmits;
	uint64_t retransmitted_bytes; /**< such data */
	/** Segments that came after later data, and had not passed the interface before. Among
	 *  them are retransmissions after a loss between the sender and the interface. */
	uint64_t out_of_order;
	/** Segments that came after later data, with too many gaps in the data to know whether
	 *  they had passed before: in neither retransmits nor out_of_order. */
	uint64_t late_unknown;
	uint64_t duplicate_acks; /**< of this end: RFC 5681, 2 */
	uint64_t zero_windows; /**< times that the receive window of this end became 0 */
	uint64_t syn_retries; /**< SYN, or SYN+ACK, that were sent again */
};

/** A connection at an interface. Library-allocated, read-only, grows at the end. */
struct netobs_connection {
	size_t sz; /**< of the struct, as the library knows it */
	/** The end that sent the SYN, if that was seen; else the end with the higher port; with
	 *  equal ports, either. Network byte order; IPv4 as ::ffff:a.b.c.d. */
	uint8_t client[16];
	uint8_t server[16];
	uint16_t client_port;
	uint16_t server_port;
	uint32_t state;	  /**< enum netobs_connection_state */
	uint32_t ifindex; /**< where it was seen, in its network namespace */
	uint32_t netns_inode; /**< of that namespace */
	int64_t time_ns;      /**< when it was read, ns since 1970 UTC */
	const char *interface; /**< its name; valid during the call, as all of it */
	int64_t start_ns;      /**< when it was first seen, ns since 1970 UTC */
	int64_t last_ns;       /**< its last packet */
	const struct netobs_connection_way *to_server; /**< what the client sends */
	const struct netobs_connection_way *to_client; /**< what the server sends */
	/** With NETOBS_PROCESSES: the processes that have the sockets at its ends, if these are
	 *  on this host, as of the last drain; NULL: none is known. */
	const struct netobs_process *client_process;
	const struct netobs_process *server_process;
};

/** The table of connections. */
struct netobs_connection_stats {
	size_t sz; /**< sizeof(struct netobs_connection_stats), set by the caller */
	uint64_t capacity; /**< connections that there is room for */
	uint64_t memory; /**< bytes that the kernel holds for the table now, about */
	uint64_t created; /**< since the start: connections that were given a place */
	/** Created connections that made room, or memory, for others, because the handshake was not
	 *  completed, or data were not answered. */
	uint64_t evicted_half_open;
	uint64_t evicted_closed; /**< the same, because they had ended */
	uint64_t evicted_idle; /**< the same, because they were idle for longer than others */
	/** Packets that were not measured: their connection found no place, because no other
	 *  could make room, or memory for more was still being added. */
	uint64_t refused_packets;
	/** Packets that were not measured, because another CPU was giving a place away. */
	uint64_t contended_packets;
	uint64_t used; /**< places taken by connections, ended ones included */
};

/**
 * Call @p take for connections that are in the table, for up to 4 milliseconds. Programs are
 * not disturbed. Connections without packets for 5 minutes are left out, and so are those
 * that ended more than 10 seconds ago: they keep their places until others need these, or
 * their memory.
 *
 * @param ctx     a started context with netobs_opts.rtt; by its own thread, also from
 *                callbacks
 * @param cursor  0 to begin; set to where the next call goes on
 * @param take    the connection is valid during the call
 * @param user    passed to @p take
 * @return 1: there are more, call again; 0: those were all; -EINVAL: an argument is NULL,
 *         or the context was not started; -ENOTSUP: without netobs_opts.rtt; -ENOMEM
 */
NETOBS_API int netobs_connections(
	const struct netobs *ctx, uint64_t *cursor,
	void (*take)(const struct netobs_connection *connection, void *user),
	void *user);

/**
 * Read the numbers of the table.
 *
 * @param ret_stats  as for netobs_stats_get()
 * @return 0; -EINVAL: an argument is NULL, or sz is too small; -ENOTSUP: without
 *         netobs_opts.rtt
 */
NETOBS_API int
netobs_connection_stats_get(const struct netobs *ctx,
			    struct netobs_connection_stats *ret_stats);

/** The name of a state: "established"; NULL if there is none. */
NETOBS_API const char *netobs_connection_state_name(unsigned int state);

/** Enough for any connection in JSON. */
#define NETOBS_CONNECTION_JSON_MAX 12288

/**
 * Write a connection as one JSON object, no newline: netobsctl-tcp(8).
 *
 * @param connection  of the library
 * @param buf         filled and NUL-terminated
 * @param size        of @p buf
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an argument is
 *         NULL
 */
NETOBS_API int netobs_connection_json(const struct netobs_connection *connection,
				      char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
