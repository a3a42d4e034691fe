/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file sink.h
 * Where records go: a file, a socket, a collector. A sink is opened by a spec
 * such as "json:/var/log/flows.json", takes records, and never makes its caller
 * wait: while its other side is slow or away, records wait in a spool, in memory
 * or on disk, within a limit. Each record that is written to a sink is
 * delivered, pending or dropped, and counted as such.
 *
 * A sink is used by one thread at a time, and is independent of all others and of
 * contexts: the records may come from anywhere. It installs no signal handlers;
 * writes to closed sockets and pipes may raise SIGPIPE where that is not ignored.
 *
 * netobs-sinks(7) has the kinds of sinks and their options.
 */
#ifndef NETOBS_SINK_H
#define NETOBS_SINK_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/flow.h>
#include <netobs/record.h>
#include <netobs/stats.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs;
struct netobs_sink;

/** Options for netobs_sink_open(). Zero means "default" for every field. */
struct netobs_sink_opts {
	size_t sz; /**< sizeof(struct netobs_sink_opts) */

	/**
	 * The context that this sink gets records of. The sink takes statistics and sampling
	 * from it, in place of @p get_stats and @p sampling. Only the thread of the context may
	 * use the sink. Either may be freed first. NULL: the program does this itself if it
	 * needs to.
	 */
	struct netobs *context;

	/** One packet or flow of so many was counted, for reports as below, and for flow
	 *  records written without NETOBS_HAS_SAMPLING; 0: as @p context says, or each */
	uint32_t sampling;
	enum netobs_sampling sampling_mode;

	/** Gets the totals of packets, for sinks that report them (IPFIX options records) and
	 *  for the option records=flow,stats. As netobs_stats_get(), which it may call. NULL:
	 *  the totals of @p context. */
	int (*get_stats)(struct netobs_stats *ret_stats, void *user);
	/** A log line, without newline: level as enum netobs_log_level. */
	void (*on_log)(int level, const char *message, void *user);
	void *user; /**< passed back to every callback */

	/** Buffer for the reason why netobs_sink_open() failed; NULL: none. */
	char (*error)[NETOBS_ERROR_MAX];
};

/** Why records were dropped; index of netobs_sink_stats.dropped. */
enum netobs_sink_drop {
	NETOBS_SINK_SPOOL_FULL, /**< more than the spool may hold */
	NETOBS_SINK_TOO_OLD,	/**< waited for longer than they may */
	NETOBS_SINK_DAMAGED, /**< the spool on disk was damaged, or parts of it are missing */
	NETOBS_SINK_UNWRITTEN, /**< disk or memory refused them */
	NETOBS_SINK_REFUSED,   /**< the other side refused them permanently */
	/** the spool had records of types that this sink does not take, from an
	 *  earlier process or a later library */
	NETOBS_SINK_UNSUPPORTED,
	NETOBS_SINK_DROPS
};

/** Records, and the packets and bytes in them. */
struct netobs_sink_count {
	uint64_t records;
	uint64_t packets;
	uint64_t bytes;
};

/** taken + recovered = delivered + pending + the sum of dropped. */
struct netobs_sink_stats {
	size_t sz; /**< sizeof(struct netobs_sink_stats), set by the caller */

	struct netobs_sink_count taken;	    /**< from netobs_sink_write() */
	struct netobs_sink_count recovered; /**< of an earlier run, from disk */
	struct netobs_sink_count delivered; /**< to the other side */
	struct netobs_sink_count pending;   /**< still to be delivered */
	struct netobs_sink_count dropped[NETOBS_REASONS_MAX]; /**< index: enum netobs_sink_drop */
	uint64_t spool_bytes; /**< size of the spool now */
	/** Records that are on disk, so that a crash of the host leaves them;
	 *  counted from the spool's beginning. */
	uint64_t durable_records;
	uint64_t spool_max_bytes; /**< limit of the size of the spool */
	/** For how long the oldest pending record has waited, at most, in milliseconds;
	 *  0: none is pending. */
	uint64_t pending_ms;
	/** When records were delivered last, in nanoseconds since 1970; 0: never. */
	int64_t delivered_ns;
	/** Since when the other side cannot be reached, or a file not be written to, in
	 *  nanoseconds since 1970; 0: no such failure is known. */
	int64_t outage_ns;
};

/**
 * Open a sink. A wrong spec is refused. An unreachable collector is no error: the sink keeps
 * trying.
 *
 * @param spec      KIND[:TARGET][?NAME=VALUE[&NAME=VALUE]...]: netobs-sinks(7)
 * @param opts      NULL: nothing is logged
 * @param ret_sink  the sink, yours: netobs_sink_close()
 * @return 0; -EINVAL: the spec or an option is wrong, the error text says where; -EBUSY: another
 *         process has the spool; -ENOENT, -EACCES ...: a file cannot be opened,
 *         or this kind of sink not be loaded; -ENOMEM
 */
NETOBS_API int netobs_sink_open(const char *spec,
				const struct netobs_sink_opts *opts,
				struct netobs_sink **ret_sink);

/**
 * Check a spec as netobs_sink_open() does, and open, make and connect nothing. Files with
 * secrets and certificates that it names are read.
 *
 * @param spec  as for netobs_sink_open()
 * @param opts  NULL: nothing is logged
 * @return 0: it can be opened, if the system allows it then; -EINVAL: the spec or an option is
 *         wrong, the error text says where; -ENOENT ...: this kind of sink or
 *         compression cannot be loaded; -ENOMEM
 */
NETOBS_API int netobs_sink_check(const char *spec,
				 const struct netobs_sink_opts *opts);

/**
 * Give a record to a sink, which copies it. It is sent with the next call of
 * netobs_sink_flush() or netobs_sink_dispatch(). Does not block.
 *
 * @param record  such as &flow->record; also one that the program made: see
 *                netobs_flow_dup()
 * @return 0, also if the sink's option `records` leaves out its type; -ENOBUFS: it
 *         was dropped, and counted; -EINVAL: an argument is NULL, the type is
 *         unknown, or sz or point_size of the record is too small
 */
NETOBS_API int netobs_sink_write(struct netobs_sink *sink,
				 const struct netobs_record *record);

/**
 * Send queued records, as far as the other side takes them. Call it at the end of a
 * batch, such as in netobs_opts.on_interval. With records=flow,stats, this also adds
 * the totals if they have changed. Does not block, and takes some milliseconds
 * at most: if more records wait, netobs_sink_fd() polls readable for
 * netobs_sink_dispatch().
 *
 * @return 0; < 0: standard output failed permanently; -EPIPE: its reader has gone
 */
NETOBS_API int netobs_sink_flush(struct netobs_sink *sink);

/**
 * The file descriptor to wait for, with poll(2) or epoll(7), for reading. Constant
 * over the life of the sink, and the sink's: do not close it.
 *
 * @return it; -EINVAL: @p sink is NULL
 */
NETOBS_API int netobs_sink_fd(const struct netobs_sink *sink);

/**
 * Continue to send pending records, for some milliseconds: when netobs_sink_fd() polls
 * readable. Does not block.
 *
 * @return as netobs_sink_flush()
 */
NETOBS_API int netobs_sink_dispatch(struct netobs_sink *sink);

/**
 * Open the file of the sink again by its name, after another program has rotated it. From then on
 * nothing is written to the renamed file, except the rest of a partly written line. Has no effect
 * on other sinks, nor on files that the sink rotates itself. May block for as long as opening a
 * file does.
 *
 * @return 0; -EINVAL: @p sink is NULL; -EAGAIN: a line is written in part, and the
 *         renamed file has no room for its rest; others: the file cannot be opened. Both
 *         are retried
 */
NETOBS_API int netobs_sink_reopen(struct netobs_sink *sink);

/**
 * Read the counts of records, by outcome.
 *
 * @param ret_stats  the caller sets sz; filled up to that size, and sz becomes the
 *                   number of bytes filled
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_sink_stats_get(const struct netobs_sink *sink,
				     struct netobs_sink_stats *ret_stats);

/**
 * Call @p take with each counter that this kind of sink has of its own: netobs-sinks(7).
 *
 * @param take  gets the counter's name, which is static
 * @return 0; -EINVAL: @p sink or @p take is NULL
 */
NETOBS_API int netobs_sink_counters(const struct netobs_sink *sink,
				    void (*take)(void *user, const char *name,
						 uint64_t value),
				    void *user);

/** The name of a reason: "spool_full", "too_old" ...; NULL beyond the last. */
NETOBS_API const char *netobs_sink_drop_name(unsigned int reason);

/**
 * Write the counts of netobs_sink_stats_get() as one JSON object, no newline: {"sink":
 * "<spec without options>","taken":{"records":..,"packets":..,"bytes":..},
 * "recovered":{..},"delivered":{..},"pending":{..},"dropped":{"<reason>":{..}}},
 * and for some kinds "counters":{"<name>":..}, which netobs-sinks(7) explains.
 *
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an
 *         argument is NULL
 */
NETOBS_API int netobs_sink_stats_json(const struct netobs_sink *sink, char *buf,
				      size_t size);

/**
 * Send pending records, for up to @p timeout_ms. Frees nothing: read netobs_sink_stats_get(), then call
 * netobs_sink_close().
 *
 * @param timeout_ms  milliseconds; -1: no limit
 * @return 0: nothing is pending; -ETIMEDOUT: something is; others: as
 *         netobs_sink_flush()
 */
NETOBS_API int netobs_sink_wait(struct netobs_sink *sink, int timeout_ms);

/**
 * Prepare for another sink to continue with the spool on disk of this one: send what takes some
 * milliseconds, and nothing after that. Records that are written from now on stay in the spool.
 * netobs_sink_dispatch() waits for the confirmations of those that were sent. Does not block; may be
 * called again. netobs_sink_wait() sends again.
 *
 * @return 0: all that was sent is confirmed, so that netobs_sink_close() now has no record sent twice;
 *         -EAGAIN: some is not; others: as netobs_sink_flush()
 */
NETOBS_API int netobs_sink_settle(struct netobs_sink *sink);

/**
 * Free. Pending records stay in a spool on disk, and are dropped from a spool in
 * memory. NULL is fine.
 */
NETOBS_API void netobs_sink_close(struct netobs_sink *sink);

#ifdef __cplusplus
}
#endif

#endif
