/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file stats.h
 * The outcome of every packet: seen = exported + filtered + sampled_out +
 * unparsed + lost, in packets and in bytes, once nothing is pending.
 */
#ifndef NETOBS_STATS_H
#define NETOBS_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/flow.h>
#include <netobs/record.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs;

/** Packets on the wire and their bytes from the IP header on. */
struct netobs_count {
	uint64_t packets;
	uint64_t bytes;
};

/** Room for reasons in the structs below; elements without a name are 0. */
#define NETOBS_REASONS_MAX 16

/** Why packets did not become flows; index of netobs_stats.unparsed. */
enum netobs_unparsed_reason {
	NETOBS_UNPARSED_SHORT, /**< the frame, as captured, ends before the ports */
	NETOBS_UNPARSED_BAD_HEADER, /**< a header contradicts itself */
	NETOBS_UNPARSED_TOO_DEEP,   /**< more nested headers than are walked */
	NETOBS_UNPARSED_ARP,	    /**< ARP */
	NETOBS_UNPARSED_NOT_IP, /**< a protocol other than IP, ARP and these: */
	NETOBS_UNPARSED_PPP, /**< PPPoE discovery, and PPP that carries no IP */
	NETOBS_UNPARSED_WLAN, /**< of files: 802.11 that carries no IP in clear */
	NETOBS_UNPARSED_LINK, /**< of files: a link type that is not supported */
	NETOBS_UNPARSED_REASONS
};

/** Why flows were lost; index of netobs_stats.lost. */
enum netobs_lost_reason {
	/** the process was late, or at max_flows, for so long that the kernel's log
	 *  and overflow table were full */
	NETOBS_LOST_TABLE_FULL,
	/** the kernel refused memory; PREEMPT_RT: too many programs interrupted
	 *  one another */
	NETOBS_LOST_KERNEL_MEMORY,
	NETOBS_LOST_MEMORY, /**< this process had none, or could not map the kernel's */
	/** netobs_opts.persist: an earlier process was killed before it had reported them, or
	 *  left them in tables that this version cannot read */
	NETOBS_LOST_RESTART,
	NETOBS_LOST_REASONS
};

/** Totals since the start of the context. */
struct netobs_stats {
	size_t sz; /**< sizeof(struct netobs_stats), set by the caller */

	/**
	 * Packets that reached any observation point. A packet in a flow is counted at its
	 * first point; a filtered, sampled out or unparsed one at each point. Counted
	 * independently of the records.
	 */
	struct netobs_count seen;
	struct netobs_count observed; /**< crossings of all observation points */
	struct netobs_count exported; /**< delivered in records */
	struct netobs_count pending;  /**< drained, to be delivered later */
	/** rejected by netobs_opts.filter or rules, at each point; or in small records, below */
	struct netobs_count filtered;
	struct netobs_count sampled_out; /**< at each point */
	struct netobs_count unparsed[NETOBS_REASONS_MAX];
	struct netobs_count lost[NETOBS_REASONS_MAX];

	uint64_t flows;	       /**< records delivered */
	uint64_t drains;       /**< generations read */
	uint64_t early_drains; /**< of which because flows reached their cap */
	/** Flows per interface and direction in the last drain, without flows that keep their
	 *  place in the kernel. */
	uint64_t table_entries;
	uint32_t interfaces; /**< observed now */
	/** Directions of interfaces where another program runs first and may hide packets;
	 *  see struct netobs_shadow (probe.h). */
	uint32_t shadowed;

	/** Observed packets that found the log of their CPU full, because the
	 *  process was late, and took the slow way through an overflow table. */
	struct netobs_count spilled;
	/** Bytes that the kernel holds for the BPF maps, about, without the entries of
	 *  overflow tables. */
	uint64_t kernel_memory;
	/**
	 * Seen packets for which the interfaces do not tell whether this was their first
	 * observation, as after address translation.
	 */
	struct netobs_count inferred;
	/** Filtered packets in records below netobs_opts.min_bytes, each packet once. */
	struct netobs_count small;
	/** Bytes that the process holds for flows until their interval ends, about. */
	uint64_t flow_memory;

	/*
	 * With NETOBS_DROPS: packets that this kernel dropped, in any network namespace, whether they
	 * were seen above or not. drops = drops_in_flows + drops_pending + drops_no_flow + drops_no_tuple +
	 * drops_no_room. Without NETOBS_DROPS, and without drops, all are 0.
	 */
	struct netobs_count drops; /**< all but those of enum netobs_drop_kind BENIGN (drop.h) */
	struct netobs_count drops_in_flows; /**< in records: netobs_flow.drop_packets */
	struct netobs_count drops_pending; /**< a record of their flow may come yet */
	/** No record of their flow came: no packet of it was observed in that interval or the next, or for the
	 *  active timeout, because they were dropped before or elsewhere, or its records are filtered or small. */
	struct netobs_count drops_no_flow;
	/** Neither the packet nor a socket has addresses and ports, or a network namespace. */
	struct netobs_count drops_no_tuple;
	struct netobs_count drops_no_room; /**< there were too many tuples at once */
	struct netobs_count drops_benign; /**< not in drops: nothing was lost by these */
	/** Buffers that the kernel dropped while programs could not run: netobs_drops_stats.missed. */
	uint64_t drops_missed;
};

/** Totals as a record: NETOBS_RECORD_STATS. */
struct netobs_stats_record {
	struct netobs_record record; /**< its time is when the totals were read */
	struct netobs_stats stats;   /**< last, since it grows */
};

/**
 * Read the totals, as of the last drain.
 *
 * @param ret_stats  the caller sets sz; filled up to that size, and sz becomes the
 *                   number of bytes filled
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_stats_get(const struct netobs *ctx,
				struct netobs_stats *ret_stats);

/** The number of classes of netobs_engine_stats.drains_by_time. */
#define NETOBS_DRAIN_TIMES 22

/** Options of a context with netobs_opts.persist: see netobs_engine_stats.kept. */
enum netobs_kept {
	NETOBS_KEPT_MAX_FLOWS = 1 << 0,	 /**< of the kernel's overflow tables */
	NETOBS_KEPT_MAX_MEMORY = 1 << 1, /**< likewise */
	NETOBS_KEPT_ATTACH =
		1 << 2, /**< disable_features: tcx or clsact, of interfaces that
				      *   are attached */
	NETOBS_KEPT_ATTACH_ORDER = 1 << 3, /**< of these interfaces */
};

/** Statistics of the context's work, since its start. */
struct netobs_engine_stats {
	size_t sz; /**< sizeof(struct netobs_engine_stats), set by the caller */

	uint64_t drains;   /**< completed */
	uint64_t drain_ns; /**< from their begin to their last record */
	uint64_t drain_cpu_ns; /**< CPU time of the calling thread in them, without records
				*   that were read before a drain */
	/** Drains by duration. Class i has those of up to 2^(i + 6) microseconds that are not
	 *  in a lower class; the last class has no limit. */
	uint64_t drains_by_time[NETOBS_DRAIN_TIMES];
	uint64_t max_flows; /**< in an interval, as limited by memory */
	uint32_t programs; /**< BPF programs for interfaces that are loaded now */
	/** With netobs_opts.persist: options without effect on the tables and links of an
	 *  earlier context, until netobs_persisted_remove(); bits of enum netobs_kept. */
	uint32_t kept;
	/** Runs of these programs and of programs that they replaced, and the time of the runs.
	 *  The kernel counts them while kernel.bpf_stats_enabled is 1. */
	uint64_t program_runs;
	uint64_t program_ns;
	/** With NETOBS_NAT: translations that are known now, those of the last minute at least */
	uint64_t translations;
	/** Translations without room, each once in an interval: 262144 are kept */
	uint64_t translations_refused;
	/** Reports of programs that were lost: the process was late, or before Linux 6.17 the kernel skipped a traced
	 *  call */
	uint64_t translations_lost;
	/** Ends of records without an address, because several translations were possible */
	uint64_t translations_ambiguous;
	/** Mappings (mapping.h) in use, as far as is known: of the translations, those
	 *  whose addresses or ports differ */
	uint64_t mappings;
	uint64_t mappings_begun; /**< since the start, older ones included */
	uint64_t mappings_ended; /**< of these */
	uint64_t mappings_forgotten; /**< of these: they may go on */
	/** Lists of the kernel's table that were begun again, because it had changed meanwhile or
	 *  a part was lost; each up to five times */
	uint64_t mapping_lists_again;
	uint64_t mapping_lists_incomplete; /**< lists that were not complete even so */
	/** Questions whether the kernel still has a mapping that are asked again, because it did not answer: there was
	 *  no room for the answer, or it had an error */
	uint64_t mapping_questions_again;
};

/**
 * Read these numbers. A system call for each program.
 *
 * @param ret_stats  as for netobs_stats_get()
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_engine_stats_get(const struct netobs *ctx,
				       struct netobs_engine_stats *ret_stats);

/**
 * The packets at an interface, in one direction, by outcome:
 * seen = flows + filtered + sampled_out + unparsed + lost.
 */
struct netobs_crossings {
	struct netobs_count seen;
	struct netobs_count flows; /**< in flows, which the process has received */
	struct netobs_count filtered;
	struct netobs_count sampled_out;
	struct netobs_count unparsed;
	struct netobs_count lost; /**< in the kernel, before they reached the process */
};

/** An interface that is observed; netobs_interfaces(). */
struct netobs_interface {
	size_t sz;	  /**< of the struct, as the library knows it */
	const char *name; /**< valid during the call, as all of it */
	const char *netns; /**< as in netobs_opts.interfaces; NULL: the context's own */
	uint32_t ifindex;     /**< in its network namespace */
	uint32_t netns_inode; /**< of its network namespace */
	/** Counters up to the last drain; index: enum netobs_direction. */
	struct netobs_crossings crossed[NETOBS_DIRECTIONS];
	/** With NETOBS_CONTAINERS, of a veth or netkit pair: the container with processes in the
	 *  network namespace of the other end, if known. NULL: none, or several */
	const char *container_id;
	/** The UID of the Kubernetes pod that has that namespace. Its containers share it, so
	 *  @p container_id is NULL then. NULL: none */
	const char *pod_uid;
};

/**
 * Call @p take for each interface that is observed now.
 *
 * A CPU has 512 places for interfaces with packets that are in no flow. Packets of further
 * interfaces are counted in @p ret_all only.
 *
 * @param ret_all  the sums of all interfaces, removed ones included; index as above;
 *                 NULL: not wanted. Seen in both directions together is netobs_stats.observed,
 *                 but for packets lost by netobs_lost_reason RESTART, by PREEMPT_RT's
 *                 interruptions, or with a log that could not be mapped
 * @return 0; -EINVAL: @p ctx or @p take is NULL
 */
NETOBS_API int netobs_interfaces(
	const struct netobs *ctx,
	void (*take)(const struct netobs_interface *interface, void *user),
	void *user, struct netobs_crossings ret_all[NETOBS_DIRECTIONS]);

/**
 * The name of a reason: "short", "table_full" ...; NULL beyond the last. A loop
 * that ends there also sees the reasons of a later library.
 */
NETOBS_API const char *netobs_unparsed_name(unsigned int reason);
/** @copydoc netobs_unparsed_name */
NETOBS_API const char *netobs_lost_name(unsigned int reason);

/**
 * Write the conservation identity as one JSON object, no newline:
 * {"seen":{"packets":..,"bytes":..},"exported":{..},"filtered":{..},
 * "sampled_out":{..},"unparsed":{"<reason>":{..}},"lost":{"<reason>":{..}}}.
 * "seen" also has observed_packets and observed_bytes and, if they are not 0,
 * inferred_packets and inferred_bytes; while there is something
 * pending, "pending":{..} is a further term of the sum. "filtered" also has
 * small_packets and small_bytes, if they are not 0.
 *
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an
 *         argument is NULL
 */
NETOBS_API int netobs_stats_json(const struct netobs_stats *stats, char *buf,
				 size_t size);

#ifdef __cplusplus
}
#endif

#endif
