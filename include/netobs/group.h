/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file group.h
 * Sums of flows, grouped by keys: bytes per client and service, per container, per VLAN. Memory
 * is bounded: if there are too many groups, the smallest ones, by bytes, are added to one common
 * sum. So all sums are exact, and the largest groups stay; a group that was added to that sum and comes
 * again says how much it lacks at most. netobsctl flows --by and netobsctl top use it.
 *
 * Groups are independent of contexts: flows may come from anywhere. One thread at a time may use
 * groups, and groups that are beside each other (netobs_groups_opts.beside).
 */
#ifndef NETOBS_GROUP_H
#define NETOBS_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/flow.h>
#include <netobs/names.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_groups;

/** The most keys that groups can have. */
#define NETOBS_GROUP_KEYS_MAX 4

/** Enough for any key as text, with its NUL. */
#define NETOBS_GROUP_TEXT_MAX 320

/** Enough for any group in JSON, with its NUL. */
#define NETOBS_GROUP_JSON_MAX 4096

/** netobs_group_keys.flags */
enum netobs_group_flag {
	/** A flow is in two groups, one for each of its ends: "host", or a process. */
	NETOBS_GROUP_BOTH_ENDS = 1 << 0,
	/** A key needs the processes of flows (NETOBS_PROCESSES). A flow is in a group for each
	 *  of its ends with a known process. */
	NETOBS_GROUP_PROCESS = 1 << 1
};

/** Keys, parsed. The texts are static. */
struct netobs_group_keys {
	size_t sz;  /**< sizeof(struct netobs_group_keys), set by the caller */
	uint32_t n; /**< how many */
	uint32_t flags; /**< enum netobs_group_flag, or-ed */
	const char *names[NETOBS_GROUP_KEYS_MAX];    /**< "client" */
	const char *headings[NETOBS_GROUP_KEYS_MAX]; /**< "CLIENT", in UTF-8 */
};

/** Sums over flows. All zero to begin with; it does not grow in later libraries. */
struct netobs_group_sum {
	uint64_t flows;	  /**< records */
	uint64_t packets; /**< as in the records */
	uint64_t bytes;	  /**< likewise */
	/** NETOBS_GROUP_BOTH_ENDS: the part of the above that the end of this group sent. */
	uint64_t sent_packets;
	uint64_t sent_bytes;
	/** For TCP, with netobs_opts.rtt: samples of the round-trip time, and the sum of each
	 *  flow's smoothed time multiplied by its samples; the mean is that sum divided by
	 *  @p rtt_samples. */
	uint64_t rtt_samples;
	uint64_t rtt_sum_ns;
	uint64_t retransmits; /**< of TCP, likewise: segments sent again */
	int64_t start_ns;     /**< of the first packet, ns since 1970 UTC */
	int64_t end_ns;	      /**< of the last packet */
	uint32_t sampling; /**< of the flows, as in their records; 0: they have none */
	uint16_t sampling_mode; /**< enum netobs_sampling */
	/** 1: the flows were sampled at different rates, so the sums estimate nothing. */
	uint16_t is_mixed;
	uint64_t drop_packets; /**< with NETOBS_DROPS: packets that the kernel dropped */
	uint64_t drop_bytes; /**< likewise: their bytes */
};

/** A group. Library-allocated, read-only, grows at the end. */
struct netobs_group {
	size_t sz;		     /**< sizeof(struct netobs_group) */
	struct netobs_group_sum sum; /**< of its flows */
	uint64_t missing_bytes; /**< at most so many more of the group are in the others; 0: it is complete */
};

/** Options for netobs_groups_new(). Zero means "default" for every field but keys. */
struct netobs_groups_opts {
	size_t sz; /**< sizeof(struct netobs_groups_opts) */
	/** "KEY[,KEY]...", at most four: src, dst, client, service, host, tuple, conversation, pair,
	 *  port, proto, interface, direction, vlan, tunnel, process, container, pod, unit, slice, machine,
	 *  network, src_network, dst_network; as in netobsctl-flows(8). */
	const char *keys;
	/** Groups at most; default 65536. Each takes 130 to 260 bytes, with container, pod, unit, slice and
	 *  machine as keys up to 900; memory grows with their number. */
	uint32_t max_groups;
	uint32_t reserved; /**< 0 */
	/** Other groups that get the same flows. Groups learn which end of a flow is the server
	 *  from the beginnings of flows, and share that with the groups they are beside. NULL: these
	 *  groups learn it by themselves. */
	struct netobs_groups *beside;
	/** Buffer for the reason why netobs_groups_new() failed; NULL: none. */
	char (*error)[NETOBS_ERROR_MAX];
};

/** The order of rows; netobs_groups_top.sort. */
enum netobs_group_sort {
	NETOBS_GROUP_BY_BYTES = 0,
	NETOBS_GROUP_BY_PACKETS = 1,
	NETOBS_GROUP_BY_FLOWS = 2,
	NETOBS_GROUP_BY_SENT = 3, /**< bytes */
	NETOBS_GROUP_BY_RTT = 4,  /**< the mean of samples */
	NETOBS_GROUP_BY_RETRANSMITS = 5,
	NETOBS_GROUP_BY_DURATION = 6,
	NETOBS_GROUP_BY_TIME = 7, /**< of the first packet, the latest one last */
	NETOBS_GROUP_BY_KEY = 8,  /**< the smallest one first */
	NETOBS_GROUP_BY_DROPS = 9 /**< packets that the kernel dropped */
};

/** The request to netobs_groups_top(), and its result. */
struct netobs_groups_top {
	size_t sz; /**< sizeof(struct netobs_groups_top), set by the caller */
	uint32_t sort; /**< enum netobs_group_sort */
	uint32_t key;  /**< NETOBS_GROUP_BY_KEY: which one, from 0 on */
	uint64_t most; /**< rows at most; 0: all groups */
	/** Only groups for which it returns non-zero; NULL: all of them. @p group is valid
	 *  during the call. */
	int (*want)(const struct netobs_group *group, void *user);
	void *user; /**< passed back to it */

	uint64_t groups; /**< set: groups that could have had a row */
	/** Set: 1 if there were more groups than there is room for. Their sums are in
	 *  @p others, unless @p want chooses. */
	uint32_t has_more;
	uint32_t reserved;		/**< 0 */
	struct netobs_group_sum total;	/**< set: of all flows, each once */
	struct netobs_group_sum others; /**< set: of groups without a row */
};

/**
 * Check and parse keys.
 *
 * @param text      "KEY[,KEY]..."; "flow" alone has no key, for programs that let their users
 *                  choose not to group
 * @param ret_keys  sz is set by the caller; NULL: check only
 * @param error     gets the reason of -EINVAL: "there is no key 'servce'; did you mean 'service'?"
 * @param size      of @p error; may be 0
 * @return 0; -EINVAL: keys are wrong, @p text is NULL, or sz is too small
 */
NETOBS_API int netobs_group_keys_parse(const char *text,
				       struct netobs_group_keys *ret_keys,
				       char *error, size_t size);

/**
 * @param ret_groups  the caller frees them by netobs_groups_free()
 * @return 0; -EINVAL: keys or options are wrong, see netobs_groups_opts.error, or an argument
 *         is NULL; -ENOMEM; others from getrandom(2)
 */
NETOBS_API int netobs_groups_new(const struct netobs_groups_opts *opts,
				 struct netobs_groups **ret_groups);

/**
 * Add a flow to its group. Without memory for one more group, the smaller half gives way.
 *
 * @param flow  of on_record, or that the program made
 * @return 0; -EINVAL: an argument is NULL, or no flow
 */
NETOBS_API int netobs_groups_add(struct netobs_groups *groups,
				 const struct netobs_flow *flow);

/**
 * Add all groups of @p from, which stay there: sums of an interval to those since the start.
 *
 * @param from  with the same keys
 * @return 0; -EINVAL: an argument is NULL, both are the same, or keys differ
 */
NETOBS_API int netobs_groups_merge(struct netobs_groups *groups,
				   const struct netobs_groups *from);

/** Remove all groups and sums. Which ends are servers stays known. NULL is fine. */
NETOBS_API void netobs_groups_clear(struct netobs_groups *groups);

/**
 * Find the first groups in an order, and the sum of the others. Rows are copies, which
 * netobs_groups_row() returns until the next call; groups may change meanwhile.
 *
 * @return the number of rows; -EINVAL: an argument is NULL, or a member cannot be; -ENOMEM
 */
NETOBS_API int netobs_groups_top(struct netobs_groups *groups,
				 struct netobs_groups_top *top);

/**
 * A row of the last netobs_groups_top(), the first one being 0; NULL: there are not so many.
 * Valid until the next netobs_groups_top() or netobs_groups_free().
 */
NETOBS_API const struct netobs_group *
netobs_groups_row(const struct netobs_groups *groups, size_t i);

/**
 * Write a key of a group as text: "10.0.0.2:443/TCP", or with names "web:https/TCP".
 *
 * @param group  a row of @p groups, or the argument of netobs_groups_top.want
 * @param key    which one, from 0 on
 * @param names  of hosts and ports; NULL: numbers
 * @param buf    filled and NUL-terminated; text is cut where it does not fit
 * @param size   of @p buf
 * @return length without NUL; -EINVAL: there is no such key, or an argument is NULL or 0
 */
NETOBS_API int netobs_group_text(const struct netobs_groups *groups,
				 const struct netobs_group *group, uint32_t key,
				 struct netobs_names *names, char *buf,
				 size_t size);

/**
 * Write a group as one JSON object, no newline: netobsctl-flows(8), GROUPS.
 *
 * @param group    a row of @p groups; NULL: netobs_groups_top.others of the last call, as
 *                 {"type":"others",..}
 * @param time_ns  its TimeMs, ns since 1970 UTC
 * @param buf      filled and NUL-terminated
 * @param size     of @p buf
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an argument is NULL
 */
NETOBS_API int netobs_group_json(const struct netobs_groups *groups,
				 const struct netobs_group *group,
				 int64_t time_ns, char *buf, size_t size);

/** Free the groups. NULL is fine. */
NETOBS_API void netobs_groups_free(struct netobs_groups *groups);

/** Add up sums, and widen their time. @p more: one without flows changes nothing. */
NETOBS_API void netobs_group_sum_add(struct netobs_group_sum *sum,
				     const struct netobs_group_sum *more);

/**
 * Add a flow to a sum.
 *
 * @return 0; -EINVAL: an argument is NULL, or no flow
 */
NETOBS_API int netobs_group_sum_flow(struct netobs_group_sum *sum,
				     const struct netobs_flow *flow);

#ifdef __cplusplus
}
#endif

#endif
