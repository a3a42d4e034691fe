/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file alert.h
 * Rules about the health of TCP connections and about flows, and alerts: records of connections and flows
 * that break them. The kernel compares each sample of a connection with the rules when it takes it, so an alert
 * arrives within a millisecond, whatever the interval of flows is. With NETOBS_NAT, one of a connection that has begun
 * while the flows of an interval are read, and those after it, wait until these are read: then it is known which
 * conversation it is part of. If more than 8192 would wait, all of them are delivered at once, without the id.
 * Rules about drops are compared with records of flows: their alerts come just before the record that breaks the rule.
 *
 * A context needs alerts in netobs_opts.records, and netobs_opts.rtt or, for drops, NETOBS_DROPS. Rules may be replaced at any
 * time, without an effect on counts and measurements.
 *
 * A rule is text: netobs-alert-rules(7).
 *
 *	rtt > 50ms for 3 of 5
 *	rtt > 3 * baseline hold 1m
 *	app_latency > 200ms limit 10/m where port 443
 *	retransmits > 1%
 *	rate > 1Gbit
 *	drops > 0.1%
 */
#ifndef NETOBS_ALERT_H
#define NETOBS_ALERT_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/record.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs;

/** The most rules of a context. */
#define NETOBS_ALERT_RULES_MAX 128

/** The metric of a rule; netobs_alert.metric. */
enum netobs_alert_metric {
	/** A round-trip time: netobs_connection_way.rtt. Nanoseconds. */
	NETOBS_ALERT_RTT = 0,
	/** An application latency: netobs_connection_way.app. Nanoseconds. */
	NETOBS_ALERT_APP_LATENCY = 1,
	/** The share of retransmitted bytes in a window of about a second in which data were
	 *  sent. Parts per million. */
	NETOBS_ALERT_RETRANSMITS = 2,
	/** Data in a window of 100 ms, without headers, each byte once. Bits per second. */
	NETOBS_ALERT_RATE = 3,
	/** Packets of a flow that this kernel dropped, since its previous record: netobs_flow.drop_packets.
	 *  Of any protocol. */
	NETOBS_ALERT_DROPS = 4,
	/** Dropped packets as a share of the packets of the record, but 1 at most. Parts per million. */
	NETOBS_ALERT_DROP_SHARE = 5,
	NETOBS_ALERT_METRICS
};

/** The direction of the connection that an alert is about; netobs_alert.way. */
enum netobs_alert_way {
	NETOBS_ALERT_TO_SERVER =
		0, /**< netobs_connection.to_server; the flow of the client */
	NETOBS_ALERT_TO_CLIENT = 1 /**< netobs_connection.to_client */
};

/** Bits of netobs_alert.record.has. */
enum netobs_alert_field {
	NETOBS_ALERT_HAS_BASELINE = 1 << 0, /**< baseline */
	/** pid, process: with NETOBS_PROCESSES, if it is known */
	NETOBS_ALERT_HAS_PROCESS = 1 << 1
};

/** A sample of a connection, or a record of a flow, has broken a rule: NETOBS_RECORD_ALERT. */
struct netobs_alert {
	/** time_ns: when the sample was taken; of a flow: the end of the interval */
	struct netobs_record record;

	/** The ends, as in struct netobs_connection. Of a flow that does not show which end is the client,
	 *  the server is the one with the lower port, or address. */
	uint8_t client[16];
	uint8_t server[16];
	uint16_t client_port;
	uint16_t server_port;
	uint8_t protocol; /**< 6: TCP; of a flow, any other one, too */
	uint8_t metric;	  /**< enum netobs_alert_metric */
	uint8_t way;	  /**< enum netobs_alert_way */
	uint8_t reserved; /**< 0 */

	uint64_t value; /**< the sample, in the unit of the metric */
	uint64_t threshold; /**< the sample exceeds it; for a multiple: the product with `baseline` */
	uint64_t baseline; /**< the least sample of the last 10 to 20 seconds with any */
	uint32_t hits; /**< how many of the newest `among` samples were over the threshold */
	uint32_t among; /**< M of the rule's "for N of M"; 1 without */

	uint32_t ifindex; /**< of the interface where it was seen, in its network namespace */
	uint32_t netns_inode;
	/** When the connection was first seen, or the first packet of the record; ns since 1970 UTC */
	int64_t start_ns;

	/** The process at the local end; if both ends are sockets of this host, the server's
	 *  process. */
	uint32_t pid;
	char process[16];   /**< its command; it may not be UTF-8 */
	uint32_t reserved2; /**< 0 */

	char interface[16]; /**< its name; "": it is gone */
	char name[64];	    /**< of the rule; "": it has none */
	char rule[512];	    /**< its text */

	/** ID of the conversation, as in struct netobs_flow; 0: not known, or without NETOBS_NAT. */
	uint64_t conversation_id;
};

/** An element of the rules of netobs_alerts_set(). */
struct netobs_alert_rule {
	size_t sz; /**< sizeof(struct netobs_alert_rule), in all elements alike */
	const char *name; /**< up to 63 bytes, for records; NULL: none */
	const char *rule; /**< netobs-alert-rules(7); up to 511 bytes */
};

/**
 * The counts of a rule since it came into use:
 *
 *	broken = fired + held + limited + lost
 *
 * Programs count while this is read, so the sum may be off by samples that are being counted.
 */
struct netobs_alert_counts {
	size_t sz; /**< sizeof(struct netobs_alert_counts), set by the caller */
	uint64_t fired; /**< alerts that the programs reported */
	/** Samples that broke the rule and were not reported, because the connection or flow had an alert
	 *  of this rule less than "hold" before. */
	uint64_t held;
	uint64_t limited; /**< the same, because there were more alerts of this rule than "limit" allows */
	uint64_t lost; /**< the same, because the process did not read fast enough */
	uint64_t broken; /**< samples that broke the rule */
	/** Fired alerts that were passed to on_record. The others wait for netobs_dispatch(), which
	 *  delivers all before it returns -ECANCELED, or for netobs_alerts_set(). */
	uint64_t delivered;
};

/**
 * Replace all rules. A rule that is in the old and in the new list, with the same name and text,
 * continues with its counts. Takes milliseconds; new expressions after "where" take tens of
 * milliseconds to compile, or more if they have host names to resolve. First delivers all alerts
 * that wait for netobs_dispatch(): this function calls on_record, so the caller must not hold a lock
 * that on_record takes.
 *
 * @param ctx    with alerts in netobs_opts.records, and what the rules need; before or after netobs_start()
 * @param rules  copied; NULL if there are none
 * @param n      how many
 * @return 0; -EINVAL: an argument or a rule is wrong, and the error text names it
 *         ("alerts[2]: column 7: ..."); -E2BIG: more than NETOBS_ALERT_RULES_MAX, more than 64
 *         different expressions, or too large ones; -ENOTSUP: the context delivers no alerts, or
 *         does not measure what a rule is about, which the error text names, or the kernel has PREEMPT_RT
 *         and a rule about connections an expression; -ECANCELED: stopped;
 *         -ENOMEM; others from the kernel. After an error, the old rules stay in use.
 */
NETOBS_API int netobs_alerts_set(struct netobs *ctx,
				 const struct netobs_alert_rule *rules,
				 uint32_t n);

/**
 * Check a rule, without a context and without privileges.
 *
 * @param size  of @p error, which gets "column 7: ..."; may be 0
 * @return 0; -EINVAL: it is wrong, or an argument is NULL; -ENOMEM
 */
NETOBS_API int netobs_alert_rule_check(const char *rule, char *error,
				       size_t size);

/**
 * Get the metric of a rule, without a context and without privileges.
 *
 * @return enum netobs_alert_metric; -EINVAL: the rule is wrong, or NULL
 */
NETOBS_API int netobs_alert_rule_metric(const char *rule);

/**
 * Read the counts of a rule.
 *
 * @param rule        its number in the list of netobs_alerts_set(); the number after the last:
 *                    all rules that were replaced
 * @param ret_counts  as for netobs_stats_get()
 * @return 0; -EINVAL: an argument is NULL, or sz is too small; -ENOENT: there are not so many
 *         rules
 */
NETOBS_API int netobs_alert_counts_get(const struct netobs *ctx, uint32_t rule,
				       struct netobs_alert_counts *ret_counts);

/** The name of a metric, as in records: "app_latency"; NULL beyond the last. */
NETOBS_API const char *netobs_alert_metric_name(unsigned int metric);

#ifdef __cplusplus
}
#endif

#endif
