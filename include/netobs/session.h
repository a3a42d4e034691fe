/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file session.h
 * TCP connections of this host's own sockets, as the kernel's TCP counted them, and the
 * processes that they belong to.
 *
 * A session is an end of a connection: a socket. Where both ends are sockets of this
 * host, there are two. All network namespaces are observed. The counters are those of
 * TCP_INFO (tcp(7), include/uapi/linux/tcp.h), read when the connection ends. At a segment that arrives
 * at a socket, a BPF program only looks whether a process waits for room in the send buffer.
 *
 * Their observer is a struct netobs of its own kind, and independent of others: netobs_start() and the
 * functions after it in netobs.h run it, by the rules there. Linux 5.12 is needed, and what
 * netobs_probe() calls "sessions".
 */
#ifndef NETOBS_SESSION_H
#define NETOBS_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/netobs.h>
#include <netobs/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The end that opened a connection; netobs_session.opened. */
enum netobs_session_opened {
	NETOBS_SESSION_OPENED_UNKNOWN = 0, /**< it is older than the observation */
	NETOBS_SESSION_ACTIVE = 1,	   /**< this end: connect(2) */
	NETOBS_SESSION_PASSIVE = 2	   /**< the other end: accept(2) */
};

/** The way a connection ended; netobs_session.ended. */
enum netobs_session_ended {
	NETOBS_SESSION_OPEN = 0, /**< not yet: a report on the way */
	/** This end sent its FIN, and it was acknowledged. */
	NETOBS_SESSION_FIN = 1,
	NETOBS_SESSION_RESET = 2, /**< by a RST from the other end */
	NETOBS_SESSION_ABORTED =
		3, /**< by this end, without a FIN, mostly by a RST */
	NETOBS_SESSION_TIMEOUT = 4, /**< the other end did not answer: ETIMEDOUT */
	NETOBS_SESSION_REFUSED = 5, /**< a RST answered the SYN: ECONNREFUSED */
	NETOBS_SESSION_FAILED = 6,  /**< another error: netobs_session.error */
	NETOBS_SESSION_ENDINGS
};

/** The evidence for the process of a session; netobs_session.process_by. */
enum netobs_session_process_by {
	NETOBS_SESSION_BY_NONE =
		0, /**< it is not: NETOBS_SESSION_HAS_PROCESS is not set */
	/** The process alone had the socket open when the observation began. */
	NETOBS_SESSION_BY_HOLDING = 1,
	NETOBS_SESSION_BY_CLOSING = 2, /**< It closed the socket, or shut it down. */
	NETOBS_SESSION_BY_OPENING = 3, /**< It connected, or accepted. */
	NETOBS_SESSION_BY_USING = 4, /**< It was the last to send or receive. */
	NETOBS_SESSION_BY_KINDS
};

/** Bits of netobs_session.record.has. */
enum netobs_session_field {
	NETOBS_SESSION_HAS_START = 1 << 0, /**< start_ns */
	/** process_by, pid, tid, uid, process, cgroup_id */
	NETOBS_SESSION_HAS_PROCESS = 1 << 1,
	NETOBS_SESSION_HAS_RTT = 1 << 2,     /**< rtt_ns, rtt_variation_ns */
	NETOBS_SESSION_HAS_MIN_RTT = 1 << 3, /**< min_rtt_ns */
	NETOBS_SESSION_HAS_FIN = 1 << 4	     /**< bytes_received counts a FIN */
};

/** A session, when it ends and, with netobs_sessions_opts.interval_ms, while it lives. All
 *  counters are totals since the connection began: NETOBS_RECORD_SESSION. */
struct netobs_session {
	struct netobs_record record; /**< its time is when the counters were read */

	uint8_t local_addr[16]; /**< IPv4 as ::ffff:a.b.c.d; zero before it is bound */
	uint8_t remote_addr[16];
	uint16_t local_port;
	uint16_t remote_port;
	uint8_t protocol;   /**< 6: TCP */
	uint8_t opened;	    /**< enum netobs_session_opened */
	uint8_t ended;	    /**< enum netobs_session_ended */
	uint8_t process_by; /**< enum netobs_session_process_by */

	int64_t start_ns; /**< when connect(2) was called, or the handshake was completed;
			   *   since 1970 */
	int64_t end_ns; /**< since 1970; of an open session: record.time_ns */

	uint64_t bytes_acked; /**< tcpi_bytes_acked: SYN and FIN count as a byte each */
	/** tcpi_bytes_received: FIN counts as a byte, see NETOBS_SESSION_HAS_FIN. */
	uint64_t bytes_received;
	uint64_t bytes_sent; /**< of data, retransmissions included */
	uint64_t bytes_retransmitted;
	uint32_t segments_sent; /**< those without data included */
	uint32_t segments_received;
	uint32_t data_segments_sent;
	uint32_t data_segments_received;
	uint32_t retransmits; /**< segments: tcpi_total_retrans */
	uint32_t lost;	      /**< segments that TCP took for lost, in all */
	uint32_t reordering; /**< the reordering that TCP expects, in segments */
	uint32_t reordered;  /**< how often it was seen: tcpi_reord_seen */
	uint32_t delivered;  /**< segments: tcpi_delivered */
	uint32_t delivered_ce; /**< of these, with a congestion mark (RFC 3168) */
	uint32_t duplicates; /**< that the other end reported: tcpi_dsack_dups */
	uint32_t cwnd;	     /**< congestion window, in segments */
	uint32_t mss;	     /**< of segments sent, in bytes */
	uint32_t error;	     /**< errno value that the socket got; 0: none */

	uint64_t rtt_ns; /**< smoothed, as RFC 6298; the kernel measures microseconds */
	uint64_t rtt_variation_ns;
	/** The smallest of the last 5 minutes (net.ipv4.tcp_min_rtt_wlen). */
	uint64_t min_rtt_ns;
	/** Microseconds with data in flight, in ticks of the kernel (1 to 10 ms); and of
	 *  these, limited by the other end's window, and by the send buffer: a process waited for
	 *  room, and neither window limited it, see LIMITS of netobsctl-sessions(8). */
	uint64_t busy_us;
	uint64_t window_limited_us;
	uint64_t buffer_limited_us;

	uint32_t netns_inode; /**< of its network namespace */
	uint32_t pid; /**< of the process (tgid), as the initial namespace counts */
	uint32_t tid; /**< of the thread */
	uint32_t uid; /**< real user, as the initial user namespace counts; ps(1) shows the effective one */
	uint64_t cgroup_id; /**< of cgroup v2 */
	/** The command of the process, as /proc/PID/comm; it may not be UTF-8. */
	char process[16];
	char thread[16]; /**< the name of that thread, if it has another one; else "" */
	char long_name[64]; /**< of the process, as in struct netobs_process */

	/** Path of the control group, of cgroup v2, or where that is the root, of the memory
	 *  controller of v1; "": not known. These three are the process's. */
	char cgroup_path[384];
	char container_id[72]; /**< that the path has: Docker, containerd, CRI-O, Podman */
	char pod_uid[40]; /**< of Kubernetes, if the path has one */
	/** These three are as in struct netobs_process, too. */
	char unit[128];
	char slice[96];
	char machine[72];

	/** ID of the conversation, as in struct netobs_flow. The library leaves it 0, not known:
	 *  netobs_session_conversation() finds it. */
	uint64_t conversation_id;

	/** With NETOBS_CONTAINER_NAMES, as in struct netobs_process; "": not known. */
	char container_name[128];
	char container_image[192];
	char pod_name[128];
	char pod_namespace[64];
};

/** Options for netobs_sessions_new(). Zero means "default" for every field. */
struct netobs_sessions_opts {
	size_t sz; /**< sizeof(struct netobs_sessions_opts) */

	/** Time between reports of open sessions; default: they are reported at
	 *  their end only. At least 100. */
	uint32_t interval_ms;
	/** NETOBS_CONTAINER_NAMES: find the names of containers and pods, as
	 *  netobs_opts.flags; or 0. */
	uint32_t flags;
	/** Kernel memory for sessions that have ended and were not read yet; default 4 MiB,
	 *  from 64 KiB to 1 GiB, rounded up to a power of two. */
	uint64_t buffer_bytes;
	/** Features to do without, as in struct netobs_opts; only 1 << NETOBS_FEATURE_SESSION_IO
	 *  and 1 << NETOBS_FEATURE_SESSION_ACCEPT matter. */
	uint64_t disable_features;

	/** A struct netobs_session, valid during the call only. */
	void (*on_record)(const struct netobs_record *record, void *user);
	/** A log line, without newline; NULL: nothing is logged. */
	void (*on_log)(int level, const char *message, void *user);
	void *user; /**< passed back to every callback */

	/** Buffer for the reason why netobs_sessions_new() failed; NULL: none. */
	char (*error)[NETOBS_ERROR_MAX];

	/** With NETOBS_CONTAINER_NAMES: as netobs_opts.container_root. */
	const char *container_root;
};

/** Totals since the start. Once stopped, ended = reported + lost. */
struct netobs_sessions_stats {
	size_t sz; /**< sizeof(struct netobs_sessions_stats), set by the caller */
	uint64_t ended;	   /**< connections, counted apart from the records */
	uint64_t reported; /**< of these, delivered to on_record */
	uint64_t lost;	  /**< of these, the process did not read fast enough */
	uint64_t updates; /**< delivered of connections that were open */
	/** Connections now: begun since the start, and not ended. 0 once stopped. */
	uint64_t open;
};

/**
 * Make an observer of sessions. Checks the options; touches nothing in the kernel.
 *
 * netobs_start() needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (or root), and finds the processes that
 * have sockets open already, which blocks for as long as it takes to look at all open files.
 *
 * netobs_dispatch() delivers sessions, for some milliseconds. Ended sessions wait for up to 20 ms in the
 * kernel, so that many are delivered at once. A session without a known process is delivered when a
 * process closes its socket. on_record may call netobs_stop(), netobs_sessions_stats_get() and
 * netobs_last_error(), and nothing else of this observer.
 *
 * After netobs_stop(), with @p interval_ms, sessions that live are reported once more. netobs_free()
 * drops sessions that were not delivered.
 *
 * @param opts  copied, and may go away afterwards; on_record must be set
 * @param ret_sessions  yours: netobs_free()
 * @return 0; -EINVAL: an option is wrong, the error text names it; -ENOMEM
 */
NETOBS_API int netobs_sessions_new(const struct netobs_sessions_opts *opts,
				   struct netobs **ret_sessions);

/**
 * Use the names of containers that a context with NETOBS_CONTAINER_NAMES has: files are read, and names kept,
 * once for both. Call it before netobs_start(), and use both objects on one thread. Either object
 * may be freed first; without the context, names stay as they are, and new containers have none.
 *
 * @param ctx  a started context
 * @return 0; -EINVAL: an argument is NULL; -ENOENT: the context has no names, and the observer will look for
 *         them itself, if its flags say so; -EALREADY: the observer has been started, or shares already
 */
NETOBS_API int netobs_sessions_share(struct netobs *sessions,
				     const struct netobs *ctx);

/**
 * Change the time between reports of open sessions: the next one comes after @p interval_ms.
 * Counts are not reset.
 *
 * @param interval_ms  0: they are reported when they end only; else at least 100
 * @return 0; -EINVAL: @p sessions is NULL, or @p interval_ms is wrong
 */
NETOBS_API int netobs_sessions_interval_set(struct netobs *sessions,
					    uint32_t interval_ms);

/**
 * Read the totals. Sessions that wait in the kernel count as ended, and not as reported.
 *
 * @param ret_stats  the caller sets sz; filled up to that size, and sz becomes the
 *                   number of bytes filled
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_sessions_stats_get(const struct netobs *sessions,
					 struct netobs_sessions_stats *ret_stats);

/**
 * The conversation that a session is part of, as flow records of a context have it: NAT may give its
 * packets other addresses than the socket has. May call on_record of the context, with a mapping.
 *
 * @param ctx  a started context with NETOBS_NAT; by its own thread, also from on_record
 * @param ret_id  as netobs_flow.conversation_id, never 0; it may be that of @p session
 * @return 0; -ENOENT: it is not known, maybe only until the context has found the interface that leads to the
 *         namespace of the socket; -EAGAIN: it is known once the context has read the flows of an interval: copy
 *         the session, and repeat the call with the copy after netobs_dispatch() of the context; -EINVAL: an argument
 *         is NULL;
 *         -ENOTSUP: the context has no NETOBS_NAT
 */
NETOBS_API int netobs_session_conversation(struct netobs *ctx,
					   const struct netobs_session *session,
					   uint64_t *ret_id);

/** The name of an ending: "fin", "reset" ...; NULL beyond the last. */
NETOBS_API const char *netobs_session_ended_name(unsigned int ended);

/** The name of how a process is known: "using" ...; NULL beyond the last. */
NETOBS_API const char *netobs_session_by_name(unsigned int by);

#ifdef __cplusplus
}
#endif

#endif
