/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file series.h
 * Groups of flows as counters, for metrics and records: up to a number of groups have a series, those
 * with most bytes, and all other flows are in one more. At each moment, the sum of all series is what
 * all flows had, to the byte, and no series decreases while it exists. TCP connections are counted in
 * the series of their groups when sessions report their ends.
 *
 * Which groups have a series is decided at the end of each interval: a group with more than twice
 * the bytes of the lightest series, as the mean of recent intervals, gets a series in its place, and begins
 * at 0. The counts of the series that ends are added to NETOBS_SERIES_LEFT, and not to the series of other
 * flows, whose rate would show those bytes a second time. As long as there
 * are fewer groups than series, each group has one from its first flow on.
 *
 * Series are independent of contexts, as netobs_groups are. One thread at a time may use them.
 */
#ifndef NETOBS_SERIES_H
#define NETOBS_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/group.h>
#include <netobs/networks.h>
#include <netobs/record.h>
#include <netobs/session.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_series;

/** The most groups that can have a series of their own. */
#define NETOBS_SERIES_MAX 10000

/** Classes of netobs_times.classes. */
#define NETOBS_TIME_CLASSES 26

/** A histogram of times. */
struct netobs_times {
	uint64_t n;	 /**< times */
	uint64_t sum_ns; /**< of all of them */
	/** Times up to 16 us are in class 0, those above 16 us * 2^(i - 1) and up to 16 us * 2^i in
	 *  class i. The last class has all longer ones, too: none that the library measures, which
	 *  are shorter than 275 s. */
	uint64_t classes[NETOBS_TIME_CLASSES];
};

/** Histograms that series can have; netobs_series_opts.histograms. */
enum netobs_series_histogram {
	NETOBS_SERIES_RTT = 1 << 0, /**< round-trip times: netobs_flow.rtt_ns */
	/** application latencies: netobs_flow.app_latency_ns */
	NETOBS_SERIES_APP_LATENCY = 1 << 1
};

/** Options for netobs_series_new(). Zero means "default" for every field but keys. */
struct netobs_series_opts {
	size_t sz;	  /**< sizeof(struct netobs_series_opts) */
	const char *keys; /**< as netobs_groups_opts.keys */
	const char *name; /**< for records: up to 63 bytes; NULL: "" */
	/** Groups with a series at most; default 500. Each takes 1.5 to 13 KiB, by its keys,
	 *  with others that it is chosen from. */
	uint32_t max_series;
	/** enum netobs_series_histogram, or-ed: the histograms of each series. Each takes up to 1.2 KiB
	 *  more of a series. Flow records have no single samples: each record of TCP with new samples
	 *  counts once, with its smoothed time. */
	uint32_t histograms;
	/** Names for the keys network, src_network and dst_network. The series share them, so they may
	 *  be freed first. NULL: those of netobs_networks_new() without a list. */
	struct netobs_networks *networks;
	/** Buffer for the reason why netobs_series_new() failed; NULL: none. */
	char (*error)[NETOBS_ERROR_MAX];
};

/** The kind of a series. */
enum netobs_series_kind {
	NETOBS_SERIES_GROUP = 0, /**< a group */
	NETOBS_SERIES_OTHER =
		1, /**< flows of groups that had no series when they came */
	NETOBS_SERIES_LEFT = 2 /**< the counts of series that have ended */
};

/** A series. Library-allocated, read-only, grows at the end. */
struct netobs_series_row {
	size_t sz;     /**< sizeof(struct netobs_series_row) */
	uint32_t kind; /**< enum netobs_series_kind */
	uint32_t n;    /**< of texts: the number of keys; 0: it is no group */
	/** The values of the keys, as netobs_group_text() writes them. No two series have the same. Names of
	 *  containers and pods that are found later become part of them at the end of the interval. */
	const char *texts[NETOBS_GROUP_KEYS_MAX];
	uint64_t flows; /**< records, since the series exists; it never decreases */
	uint64_t packets; /**< likewise, as in the records, and so all that follow */
	uint64_t bytes;
	uint64_t retransmits; /**< of TCP, with netobs_opts.rtt: segments sent again */
	uint64_t drop_packets; /**< with NETOBS_DROPS: packets that the kernel dropped */
	uint64_t drop_bytes; /**< likewise: their bytes */
	uint64_t connections; /**< TCP connections that have ended: netobs_series_add() of sessions */
	uint64_t connections_failed;	/**< of these */
	const struct netobs_times *rtt; /**< NULL: without this histogram */
	const struct netobs_times *app_latency; /**< likewise */
};

/** netobs_group_record.record.has */
enum netobs_group_field {
	NETOBS_GROUP_HAS_SENT = 1 << 0,	       /**< sent_packets, sent_bytes */
	NETOBS_GROUP_HAS_SRC = 1 << 1,	       /**< src */
	NETOBS_GROUP_HAS_DST = 1 << 2,	       /**< dst */
	NETOBS_GROUP_HAS_PORTS = 1 << 3,       /**< src_port, dst_port */
	NETOBS_GROUP_HAS_CLIENT = 1 << 4,      /**< client */
	NETOBS_GROUP_HAS_CLIENT_PORT = 1 << 5, /**< client_port */
	NETOBS_GROUP_HAS_SERVER = 1 << 6,      /**< server */
	NETOBS_GROUP_HAS_SERVER_PORT = 1 << 7, /**< server_port */
	NETOBS_GROUP_HAS_HOST = 1 << 8,	       /**< host */
	NETOBS_GROUP_HAS_PEER = 1 << 9,	       /**< peer */
	NETOBS_GROUP_HAS_PROTO = 1 << 10,      /**< protocol */
	NETOBS_GROUP_HAS_DIRECTION = 1 << 11,  /**< direction */
	NETOBS_GROUP_HAS_VLAN = 1 << 12,       /**< vlan_id */
	NETOBS_GROUP_HAS_OUTER_VLAN = 1 << 13, /**< outer_vlan_id */
	NETOBS_GROUP_HAS_VNI = 1 << 14,	       /**< vni */
	NETOBS_GROUP_HAS_RTT = 1 << 15,	       /**< rtt_ns, rtt_samples */
	NETOBS_GROUP_HAS_RTT_TIMES = 1 << 16,  /**< rtt_times: there are some */
	/** app_latency_times: there are some */
	NETOBS_GROUP_HAS_APP_LATENCY_TIMES = 1 << 17
};

/** The counts of a group's flows in an interval: NETOBS_RECORD_GROUP. */
struct netobs_group_record {
	struct netobs_record record; /**< time_ns: the end of the interval */

	/** Time of the first packet, or the first end of a connection; ns since 1970 UTC. */
	int64_t start_ns;
	int64_t end_ns;	  /**< of the last packet, or end of a connection */
	uint64_t flows;	  /**< records of flows */
	uint64_t packets; /**< as in these */
	uint64_t bytes;	  /**< as in these */
	/** The part of the above that the end of this group sent. */
	uint64_t sent_packets;
	uint64_t sent_bytes;
	uint64_t rtt_samples; /**< of TCP, with netobs_opts.rtt */
	uint64_t rtt_ns;      /**< their mean, of rtt_sum_ns */
	uint64_t retransmits; /**< of TCP, likewise: segments sent again */

	/** Values of the group's keys: IPv4 is ::ffff:a.b.c.d. */
	uint8_t src[16];
	uint8_t dst[16];
	uint8_t client[16];
	uint8_t server[16];
	uint8_t host[16];
	uint8_t peer[16]; /**< with "pair": the other host */
	uint16_t src_port;
	uint16_t dst_port;
	uint16_t client_port;
	uint16_t server_port;
	uint16_t vlan_id;
	uint16_t outer_vlan_id;
	uint8_t protocol;
	uint8_t direction; /**< 0: into the interface, 1: out of it */
	uint8_t series; /**< enum netobs_series_kind; never NETOBS_SERIES_LEFT */
	uint8_t reserved;  /**< 0 */
	uint32_t sampling; /**< as in flows; 0: they have none */
	uint32_t vni;
	uint32_t ifindex;	  /**< 0: not known */
	uint32_t netns_inode;	  /**< 0: not known */
	uint32_t pid;		  /**< 0: not known */
	uint32_t reserved2;	  /**< 0 */
	uint64_t conversation_id; /**< 0: the group has none */
	char interface[16];	  /**< "": not known, as all texts */
	char process[16];	  /**< the command; it may not be UTF-8 */
	char tunnel[16];	  /**< its type */
	char container_id[72];
	char pod_uid[40];
	char client_network[NETOBS_NETWORK_NAME_MAX]; /**< names of networks.h */
	char src_network[NETOBS_NETWORK_NAME_MAX];
	char dst_network[NETOBS_NETWORK_NAME_MAX];
	char name[64]; /**< netobs_series_opts.name */
	uint64_t drop_packets; /**< with NETOBS_DROPS: packets that the kernel dropped */
	uint64_t drop_bytes; /**< likewise: their bytes */
	uint64_t connections; /**< TCP connections that have ended: netobs_series_add() of sessions */
	uint64_t connections_failed; /**< of these */
	/** With NETOBS_CONTAINER_NAMES, as in struct netobs_process. */
	char container_name[128];
	char pod_name[128];
	char pod_namespace[64];
	char unit[128]; /**< of systemd, as all of these in struct netobs_process */
	char slice[96];
	char machine[72];
	uint64_t rtt_sum_ns; /**< the sum of rtt_samples; 0: rtt_ns times rtt_samples */
	/** netobs_series_opts.histograms, of the interval. */
	struct netobs_times rtt_times;
	struct netobs_times app_latency_times;
};

/**
 * @param ret_series  the caller frees them by netobs_series_free()
 * @return 0; -EINVAL: keys or options are wrong, see netobs_series_opts.error, or an argument
 *         is NULL; -ENOMEM; others from getrandom(2)
 */
NETOBS_API int netobs_series_new(const struct netobs_series_opts *opts,
				 struct netobs_series **ret_series);

/**
 * Add a flow, or a TCP connection that has ended, to the series of its group, or to that of others. With a
 * key such as "host", a flow is added to one for each of its ends: then the sum of all series is that of ends.
 *
 * A session is one end of a connection; an open one changes nothing. If the other end is reported as well,
 * the connection is counted once, with the end that is reported first, unless some 16,000 other connections end
 * between the two. The first session allocates 256 KiB for that. With keys that count a flow at both ends, each
 * session counts for its own end. Keys that only packets have, such as interface and vlan, are unknown. A connection
 * has failed if it was refused, timed out, ended with another error, or was reset before it carried data
 * (enum netobs_session_ended).
 *
 * @param record  struct netobs_flow or netobs_session, of on_record, or that the program made
 * @return 0; -EINVAL: an argument is NULL, or another record
 */
NETOBS_API int netobs_series_add(struct netobs_series *series,
				 const struct netobs_record *record);

/**
 * End an interval: make a record of each group with a series that had flows or ends of connections, and of
 * other flows, and decide which groups have a series from now on. The sum of the records is what all flows of the
 * interval had, to the byte.
 *
 * @param time_ns  of the records, ns since 1970 UTC
 * @param take     the record is valid during the call, and must not use the series; NULL: none are
 *                 made
 * @param user     passed to @p take
 * @return the number of records; -EINVAL: @p series is NULL
 */
NETOBS_API int netobs_series_end_interval(
	struct netobs_series *series, int64_t time_ns,
	void (*take)(const struct netobs_record *record, void *user), void *user);

/**
 * Call @p take for each series: those of groups, then one of NETOBS_SERIES_OTHER and one of
 * NETOBS_SERIES_LEFT.
 *
 * @param take  the row is valid during the call; its texts and histograms are until the interval ends
 * @param user  passed to @p take
 * @return the number of series; -EINVAL: an argument is NULL
 */
NETOBS_API int
netobs_series_each(const struct netobs_series *series,
		   void (*take)(const struct netobs_series_row *row, void *user),
		   void *user);

/** Free the series. NULL is fine. */
NETOBS_API void netobs_series_free(struct netobs_series *series);

#ifdef __cplusplus
}
#endif

#endif
