/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file diagnosis.h
 * Judges whose fault it is that a connection is slow, by the records of turns, queues and hosts (turn.h)
 * that the tracers of one host or of both made of it. A verdict says what takes longer than before: the
 * client's process, its host, the network, the server's host, or the server's process.
 *
 * A *turn* lasts from the first byte of a request that is written to that of the next request. Each moment of it
 * belongs to the *part* in which the last byte of the request, and then that of the answer, is, so the parts add up
 * to the turn. The *norm* of a part is the most that it took in a turn before, and a fifth more. A part is to blame
 * for the time beyond its norm, or, if that is more, for a rise of its mean that chance does not explain.
 *
 * A diagnosis does not use the kernel: records may come from a tracer, or from a file by netobs_record_parse().
 * One thread at a time may use it. No function blocks.
 */
#ifndef NETOBS_DIAGNOSIS_H
#define NETOBS_DIAGNOSIS_H

#include <stdint.h>

#include <netobs/record.h>
#include <netobs/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a part of the time is spent. The client is the end that opened the connection. */
enum netobs_verdict_place {
	NETOBS_PLACE_NONE = 0, /**< nothing takes longer than before */
	NETOBS_PLACE_CLIENT_PROCESS = 1,
	NETOBS_PLACE_CLIENT_HOST = 2,
	NETOBS_PLACE_NETWORK = 3,
	NETOBS_PLACE_SERVER_HOST = 4,
	NETOBS_PLACE_SERVER_PROCESS = 5,
	/** The network or the other host: only one host has records, and they cannot tell these apart. */
	NETOBS_PLACE_BEYOND = 6,
	NETOBS_PLACES
};

/** What takes the time at a place. */
enum netobs_verdict_cause {
	NETOBS_CAUSE_NONE = 0,
	/* Of a process: */
	NETOBS_CAUSE_THINKS = 1, /**< it runs or sleeps between reading and writing */
	NETOBS_CAUSE_READS = 2, /**< bytes can be read, and it does not read them */
	NETOBS_CAUSE_STOPPED = 3, /**< a signal, a debugger or a freezer stops it */
	NETOBS_CAUSE_ACCEPT =
		4, /**< it does not accept connections: its accept queue is full */
	/* Of a host: */
	NETOBS_CAUSE_CPU = 5,	/**< threads that could run wait for a CPU */
	NETOBS_CAUSE_STACK = 6, /**< TCP, IP, drivers, forwarding */
	NETOBS_CAUSE_SEND_BUFFER = 7,
	NETOBS_CAUSE_RECEIVE_BUFFER = 8, /**< also of datagrams */
	NETOBS_CAUSE_QDISC =
		9, /**< bytes wait in a queueing discipline, or find no room in it */
	NETOBS_CAUSE_DROP =
		10, /**< the kernel drops packets: netobs_verdict.drop_cause says why */
	NETOBS_CAUSE_CONNTRACK = 11, /**< the table of connections is full */
	/* Of the network: */
	NETOBS_CAUSE_DELAY = 12, /**< the way takes longer */
	NETOBS_CAUSE_QUEUE = 13, /**< other flows fill the last link */
	NETOBS_CAUSE_LOSS = 14,
	NETOBS_CAUSE_REORDERING = 15,
	NETOBS_CAUSE_MTU = 16,	/**< only large packets are lost */
	NETOBS_CAUSE_LINK = 17, /**< the link of an uplink went down */
	NETOBS_CAUSES
};

/** How sure a verdict is. */
enum netobs_certainty {
	/** There are two causes of about the same size, too few turns, or no time before, or evidence is missing. */
	NETOBS_NOT_SURE = 0,
	/** The place has two fifths of the increase, with ten turns before and in the window. Thinking, the stack,
	 *  delay and reordering are likely at most, since only a difference of times shows them. */
	NETOBS_LIKELY = 1,
	/** The place has three fifths of the increase, with ten turns before and in the window, no evidence is missing
	 *  that could name another place, and a record shows it: a drop, a stop, a wait for a CPU, unread bytes, a
	 *  full buffer, a carrier that changed, or bytes that left one host and did not arrive at the other. */
	NETOBS_CERTAIN = 2,
	NETOBS_CERTAINTIES
};

/** What would make a verdict surer; bits of netobs_verdict.missing. */
enum netobs_verdict_missing {
	NETOBS_MISSING_HOST = 1 << 0,	  /**< records of the other host */
	NETOBS_MISSING_BEFORE = 1 << 1,	  /**< ten turns before, or a norm */
	NETOBS_MISSING_TURNS = 1 << 2,	  /**< ten turns in the window */
	NETOBS_MISSING_THREADS = 1 << 3,  /**< what threads did */
	NETOBS_MISSING_LIMITS = 1 << 4,	  /**< what kept TCP from sending */
	NETOBS_MISSING_COUNTERS = 1 << 5, /**< records of hosts */
	NETOBS_MISSING_QUEUES = 1 << 6, /**< records of queues: who filled one */
	NETOBS_MISSING_POINTS = 1 << 7, /**< tracepoints that a kernel lacks */
	NETOBS_MISSING_CLOCK =
		1 << 8, /**< a bound of the clocks: they jumped, or no packet went both ways */
	NETOBS_MISSING_RECORDS =
		1 << 9 /**< only some of the turns have records, or there were more than max_turns */
};

#define NETOBS_VERDICT_PARTS_MAX 24

/** A part of the time, and what it took. */
struct netobs_verdict_part {
	uint8_t place; /**< enum netobs_verdict_place */
	uint8_t cause; /**< enum netobs_verdict_cause */
	uint8_t reserved[6];
	uint64_t now_ns; /**< mean of the turns in the window; of streams, of a second */
	uint64_t before_ns; /**< mean of the turns before, or as a norm says */
	uint64_t most_ns; /**< the most that it took in a turn before; the norm is a fifth more */
	uint64_t blamed_ns; /**< time of the window that it is to blame for */
};

/** The judgement of what one client and one service did in a window: NETOBS_RECORD_VERDICT.
 *  Library-allocated, read-only, grows at the end. */
struct netobs_verdict {
	struct netobs_record record; /**< its time is the beginning of the window */
	int64_t end_ns; /**< end of the window, ns since 1970 UTC */
	uint8_t client[16]; /**< address at the socket, or at the uplink; IPv4 as ::ffff:a.b.c.d */
	uint8_t server[16]; /**< address of the service, at the client */
	uint16_t server_port;
	uint8_t protocol; /**< of IP: 6, TCP; 17, UDP */
	uint8_t place;	  /**< what is to blame: enum netobs_verdict_place */
	uint8_t cause; /**< the largest cause there: enum netobs_verdict_cause */
	uint8_t certainty; /**< enum netobs_certainty */
	uint8_t second_place,
		second_cause; /**< another place with a fifth of the increase or more; 0: none */
	uint8_t is_stream; /**< 1: a stream, which is judged by its rate, without turns; parts are of a second */
	uint8_t reserved[3];
	uint32_t missing; /**< enum netobs_verdict_missing */
	uint32_t missing_points; /**< points that a kernel lacks, as in struct netobs_host; of all hosts */
	uint32_t connections; /**< connections in the window and before */
	uint32_t turns, turns_before; /**< number of turns; of streams, seconds */
	uint64_t turn_ns, turn_before_ns; /**< mean of a turn */
	uint64_t rate, rate_before;	  /**< bytes a second of streams */
	uint64_t blamed_ns; /**< time of the window that place is to blame for, with all its causes */
	uint64_t all_blamed_ns; /**< time of the window that all places are to blame for */
	int64_t clock_ns; /**< by how much the server's clock is ahead of the client's */
	uint64_t clock_bound_ns; /**< the error of clock_ns is at most that; 0: not known */
	uint64_t lost_bytes; /**< bytes that left one host and did not arrive at the other */
	uint64_t dropped; /**< packets that the hosts dropped; drop_cause is why the last one was */
	uint64_t throttled; /**< how often cgroup had used up its quota of CPU time */
	uint32_t client_pid, server_pid; /**< process of each end; 0: not known */
	char client_command[16];
	char server_command[16];
	char client_host[64]; /**< name of the client's host, from its records; "": it has none */
	char server_host[64]; /**< name of the server's host, from its records; "": it has none */
	char interface[16];  /**< interface of the queue or the link to blame */
	char drop_cause[64]; /**< name of the reason of the last drop */
	char drop_function[64]; /**< function of the kernel that dropped it; "": not known */
	char cgroup[128]; /**< the control group that was throttled, the end of its path */
	char alert[64]; /**< the rule of the alert that the connection was traced for; "": none */
	int64_t alert_ns; /**< time of that alert */
	/** What passed the queue that is to blame, in bytes, or who used the CPU, in ns; the amounts of the shares and
	 *  filled_rest add up to it. */
	uint64_t filled;
	uint64_t filled_rest; /**< the part of filled that is in no share */
	uint16_t n_parts, n_shares;
	uint8_t reserved2[4];
	struct netobs_verdict_part parts[NETOBS_VERDICT_PARTS_MAX]; /**< from the client to the server */
	struct netobs_queue_share shares[NETOBS_QUEUE_SHARES_MAX]; /**< who filled the queue, largest first */
};

struct netobs_diagnosis;

/** Zero means "default" for every field. */
struct netobs_diagnosis_opts {
	size_t sz;	    /**< sizeof(struct netobs_diagnosis_opts) */
	uint32_t max_turns; /**< records of each type that are kept; default 65536. Beyond, the older half is forgotten. */
};

/**
 * Make a diagnosis, which has no records yet.
 *
 * @param opts  NULL: defaults
 * @param ret_diagnosis  yours: netobs_diagnosis_free()
 * @return 0; -EINVAL; -ENOMEM
 */
NETOBS_API int netobs_diagnosis_new(const struct netobs_diagnosis_opts *opts,
				    struct netobs_diagnosis **ret_diagnosis);

/** Free a diagnosis and the records in it; NULL is fine. */
NETOBS_API void netobs_diagnosis_free(struct netobs_diagnosis *diagnosis);

#define NETOBS_DIAGNOSIS_HOSTS_MAX 64

/**
 * Add a copy of a record, in any order, also more than once. A verdict is a norm for its service: it replaces the
 * time before. What is normal is the time that it judged, or, if it blames a place, its own time before. The last
 * verdict about a service counts. Other types are ignored.
 *
 * @param host  number of the host that made the record, below NETOBS_DIAGNOSIS_HOSTS_MAX: one for each tracer
 * @return 0; -EINVAL: an argument is NULL or too large; -ENODATA: a verdict that blames a place, and had less
 *         than ten turns before, says nothing about what is normal; -ENOMEM
 */
NETOBS_API int netobs_diagnosis_add(struct netobs_diagnosis *diagnosis,
				    unsigned int host,
				    const struct netobs_record *record);

/**
 * Judge a window: one verdict for each client and service that has turns in it, the largest blame first.
 * Times are by the clock of the lowest host with records.
 *
 * @param since_ns  the window begins; ns since 1970 UTC; 0: with the first record
 * @param until_ns  it ends; 0: with the last record
 * @param before_ns  the time that shows what is normal begins, which ends at @p since_ns; 0: with the first record
 * @param on_verdict  gets each verdict, which is valid during the call; it must not use @p diagnosis
 * @return number of verdicts; -EINVAL: the times are not in order; -ENOMEM
 */
NETOBS_API int netobs_diagnosis_judge(
	struct netobs_diagnosis *diagnosis, int64_t since_ns, int64_t until_ns,
	int64_t before_ns,
	void (*on_verdict)(const struct netobs_verdict *verdict, void *user),
	void *user);

/** The name of a place, "none", "client process" ...; NULL beyond the last. */
NETOBS_API const char *netobs_verdict_place_name(unsigned int place);

/** The name of a cause, "none", "thinks" ...; NULL beyond the last. */
NETOBS_API const char *netobs_verdict_cause_name(unsigned int cause);

/** "not sure", "likely", "certain"; NULL beyond the last. */
NETOBS_API const char *netobs_certainty_name(unsigned int certainty);

#ifdef __cplusplus
}
#endif

#endif
