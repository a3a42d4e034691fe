/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file netobs.h
 * Observers of all kinds: start, the event loop, stop. Contexts: their options and changes.
 *
 * An observer is a struct netobs. That of netobs_new() is a context: it observes the interfaces that
 * its options name and delivers flow records. netobs_sessions_new() (session.h), netobs_drops_new()
 * (drop.h), netobs_trace_new() (trace.h) and netobs_capture_new() (capture.h) make other kinds, which
 * the functions from netobs_start() to netobs_free() take as well. Functions of one kind return -EINVAL for
 * another.
 *
 * An observer installs no signal handlers, and everything happens inside the calls below,
 * on the calling thread; only system calls that have to wait for the kernel, and what
 * netobs_change_begin() prepares, are left to a thread that does nothing else, blocks all
 * signals and ends. An observer may be used by one thread at a time; different ones are
 * independent.
 *
 * Functions that can fail return an int: >= 0 is fine, < 0 is a negated errno
 * value. netobs_last_error() has what went wrong in words, and so has
 * netobs_opts.error when there is no observer yet; netobs_opts.on_log gets more.
 */
#ifndef NETOBS_NETOBS_H
#define NETOBS_NETOBS_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/alert.h>
#include <netobs/connection.h>
#include <netobs/flow.h>
#include <netobs/mapping.h>
#include <netobs/stats.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs;

/** Severity of a log line, with the values of syslog(3). */
enum netobs_log_level {
	NETOBS_LOG_ERROR = 3,
	NETOBS_LOG_WARNING = 4,
	NETOBS_LOG_INFO = 6,
	NETOBS_LOG_DEBUG = 7
};

/** netobs_opts.flags */
enum netobs_opt_flag {
	/** One record per interface and direction; default: a flow is counted once. */
	NETOBS_PER_INTERFACE = 1 << 0,
	/** Find the processes that flows of TCP and UDP come from and go to, by their sockets
	 *  on this host, in any network namespace (netobs_flow.src_process, dst_process).
	 *  Programs follow sockets, at no cost per packet. Needs the kernel and privileges of
	 *  an observer of sessions (session.h), or netobs_start() fails. */
	NETOBS_PROCESSES = 1 << 1,
	/** Find the container at the other end of each veth or netkit pair
	 *  (netobs_interface.container_id, pod_uid): it has processes in the network namespace
	 *  there, and the paths of their control groups name it. A thread looks at all control
	 *  groups of this host when pairs come or go, and every 5 minutes. It needs no
	 *  privileges, but must see the processes of other PID namespaces. */
	NETOBS_CONTAINERS = 1 << 2,
	/** Find the addresses that NAT of this host gives flows (netobs_flow.xlat_src,
	 *  orig_src and the members after them), from the conntrack entries of packets that leave by
	 *  observed interfaces. Needs conntrack and its type information (BTF), or
	 *  netobs_start() returns -ENOTSUP. It takes 75 MiB of memory at most. See
	 *  mapping.h. */
	NETOBS_NAT = 1 << 3,
	/** Count the packets of each flow that this kernel drops, and name the last reason
	 *  (netobs_flow.drop_packets and the members after it), in network namespaces where the
	 *  flow is observed, and behind a veth or netkit pair by which its packets come or go. Drops that
	 *  belong to no flow are in netobs_stats (drops_no_flow and others). Drops are neither sampled nor
	 *  filtered. Packets that NAT has changed are found by the tuple with which they came in; with
	 *  NETOBS_NAT, by those before and behind the interface, too. Programs run for dropped packets only. Needs the kernel and privileges of
	 *  an observer of drops (drop.h), or netobs_start() fails. It takes 24 MiB of memory at most. */
	NETOBS_DROPS = 1 << 4,
	/** With NETOBS_PROCESSES, find the names of the processes' containers and pods
	 *  (netobs_process.container_name and the members after it), in files of the container runtimes
	 *  of this host: Docker, containerd, CRI-O, Podman and the kubelet. A thread reads them;
	 *  netobs_start() waits for it half a second at most. Records made before a container is known lack
	 *  its names. Files that cannot be read are logged once: it takes root or
	 *  CAP_DAC_READ_SEARCH. It takes 8 MiB of memory at most. See
	 *  netobs_opts.container_root. */
	NETOBS_CONTAINER_NAMES = 1 << 5
};

/** The position of netobs in the chain of tcx programs; netobs_opts.attach_order. */
enum netobs_attach_order {
	/** Before all others, so that no verdict of theirs hides packets. */
	NETOBS_ATTACH_FIRST = 0,
	/** After all others: packets that they drop, redirect or pass as final
	 *  (TC_ACT_OK) are not seen. */
	NETOBS_ATTACH_LAST = 1
};

/** Actions on packets. */
enum netobs_action {
	NETOBS_ACCEPT = 1, /**< they are observed */
	NETOBS_REJECT = 2  /**< they are counted as filtered */
};

/** The most rules that netobs_opts.rules can have. */
#define NETOBS_RULES_MAX 64

/** The most different samplings that rules can have, beside "all packets". */
#define NETOBS_RATES_MAX 7

/** An element of netobs_opts.rules. */
struct netobs_rule {
	size_t sz; /**< sizeof(struct netobs_rule), in all elements alike */
	/** Packets that it matches: an expression as in netobs_opts.filter. */
	const char *filter;
	enum netobs_action action; /**< what to do with them */
	/** For NETOBS_ACCEPT: count one of so many packets or flows that the rule accepts;
	 *  1: all; 0: as netobs_opts.sampling and sampling_mode say. */
	uint32_t sampling;
	enum netobs_sampling sampling_mode; /**< whether @p sampling is of packets or flows */
	uint32_t reserved;		    /**< 0 */
};

/** Options for netobs_new(). Zero means "default" for every field. */
struct netobs_opts {
	size_t sz; /**< sizeof(struct netobs_opts) */

	/* ---- What is observed ---- */

	/** Interfaces to observe; NULL-terminated, NULL: all, as they come and
	 *  go. An entry is a name, a POSIX extended regular expression between
	 *  slashes (`/^veth/`), or `netns:NAME/INTERFACE` for an interface in the
	 *  network namespace that ip-netns(8) calls NAME, or that an absolute
	 *  path names (`netns:/proc/1234/ns/net/eth0`); there INTERFACE may be a
	 *  `/regex/` too. A plain name must exist when the context starts, and
	 *  so must a namespace. Observing a namespace does not keep it alive. If
	 *  its name is removed and made again, the new one is observed within
	 *  250 ms, unless it is observed under another name already, which is
	 *  logged. */
	const char *const *interfaces;
	/** Interfaces not to observe: names or `/regex/`; NULL-terminated. */
	const char *const *exclude;
	/** Directions of packets that are observed. */
	enum netobs_direction direction;
	/** Filters of a clsact qdisc always come late. */
	enum netobs_attach_order attach_order;
	/** Packets to observe: a pcap-filter(7) expression of up to 4096 bytes, which the
	 *  kernel evaluates on what tcpdump(8) would show at the same point: the outer
	 *  headers of a tunnel, and the frame without the VLAN tag that the kernel keeps
	 *  beside it. An expression with the word "vlan" sees that tag in the frame.
	 *  "inner EXPR" and "EXPR and inner EXPR" apply what follows "inner" to the packet
	 *  that a tunnel carries; a packet without a tunnel does not match.
	 *  Not available: inbound, outbound and ifindex. NULL:
	 *  all packets. Others are counted as filtered, at each point. A packet may
	 *  match at one point of its way and not at another; netobsctl-flows(8) describes
	 *  where it counts. */
	const char *filter;
	/** Packets to observe, by an ordered list: at each point, the first rule that matches a
	 *  packet decides about it; if none matches, default_action does, which must be set.
	 *  Rejected packets are counted as filtered. netobs_rule_count_get() returns the
	 *  packets that each rule decided about. Not together with @p filter. */
	const struct netobs_rule *rules;
	uint32_t n_rules;		   /**< NETOBS_RULES_MAX at most */
	enum netobs_action default_action; /**< 0: there are no rules */
	/** Count one of so many packets or flows that the filter accepts, or a rule without a
	 *  sampling of its own; 0 and 1: all. Records and statistics count the sampled
	 *  packets, without scaling, and records name the interval: flows of different
	 *  samplings have records of their own. */
	uint32_t sampling;
	/** Packets: one of each @p sampling in a row, at random, at each point; segments of
	 *  a buffer (GSO, GRO) are packets. A packet counts where it is observed first,
	 *  so flows that address translation makes have no records. Flows: all packets
	 *  of a flow, at all points, or none, by a hash of its addresses, ports and
	 *  protocol (inside of a tunnel), the same for both directions and on all hosts
	 *  (netobsctl-flows(8)). */
	enum netobs_sampling sampling_mode;

	/* ---- How it is measured and reported ---- */

	uint64_t flags;	      /**< enum netobs_opt_flag, or-ed */
	uint32_t interval_ms; /**< time between drains; default 5000, at least 10 */
	/** A flow with traffic is reported this often (RFC 5102 5.11.3, reason 2);
	 *  default: every interval. */
	uint32_t active_timeout_ms;
	/** A flow without traffic for this long has ended (reason 1); default
	 *  15000. Matters when active_timeout_ms is longer than an interval. */
	uint32_t idle_timeout_ms;
	/** 1: measure the health of TCP connections: flow records have round-trip times, application
	 *  latency and retransmissions, and netobs_connections() has them live. Records of echo
	 *  requests (ICMP, ICMPv6) have round-trip times, too. All packets that the filter
	 *  accepts are measured, also those that sampling leaves out; a filter has to accept
	 *  both directions. Connections that are there when the context starts are measured
	 *  from then on. */
	uint32_t rtt;
	/** Records with fewer bytes are not delivered; their packets are counted as
	 *  filtered (netobs_stats.small). With more than max_flows flows in an interval,
	 *  a flow may have several records in it. */
	uint64_t min_bytes;

	/* ---- Memory ---- */

	/** Upper bound of the memory of all BPF maps, and of flows in the process
	 *  until their interval ends, in bytes; default: what max_flows need. Where
	 *  it is near, flows are reported before the interval ends. Limits of the
	 *  process's memory control groups, where these are mounted, make it less: a
	 *  third of what they leave, and flows beyond the rest are lost (memory). From
	 *  netobs_start() -EINVAL: too little; -ENOMEM: the groups leave too little. */
	uint64_t max_memory;
	/** Upper bound of flows per interval, for each interface and direction that
	 *  they are seen at; default 1048576. Where it is near, flows are reported
	 *  before the interval ends. A cap, not a size: memory follows the flows. */
	uint32_t max_flows;
	/** With @p rtt: connections that are measured at a time, each at each interface. It is
	 *  rounded up to a power of two. Default: 65536, and less where max_memory or the memory
	 *  control group is small. Each takes 100 bytes of the kernel's memory from the start
	 *  on, and another 896, with alerts in @p records 1280, once so many are measured: memory is
	 *  added for 1024 at a time. If hundreds come at once, faster than it is added, some are
	 *  measured from a later packet on. Memory of those that have ended, and whose flows were
	 *  reported, is used again, but not given back before the end. When all are in use,
	 *  connections that have ended, were never completed or have been idle for 10 seconds
	 *  make room. Echo requests between two addresses take the place of one incomplete
	 *  connection. -EINVAL from netobs_new(): more than 16777216. */
	uint32_t max_connections;

	/* ---- What outlives the context ---- */

	/** Have programs, links and tables outlive the context: they are pinned below this
	 *  directory of a BPF file system, which is made if only its last part is missing, and
	 *  netobs_stop() leaves them to the next context, which goes on where this one
	 *  ended. Packets that pass in between wait in the tables. If the process is killed, the
	 *  next context counts as lost what this one had taken out of them since the last
	 *  on_interval that returned, also what it had delivered since; nothing is delivered
	 *  twice. Used by one context at a time; netobs_persisted_remove() ends it (persist.h). If the context
	 *  cannot pin there, or users other than root and the user of the process can write
	 *  there, it logs a warning and goes on without. NULL: the context detaches all that it
	 *  attached. */
	const char *persist;

	/* ---- Callbacks, which run on the calling thread; NULL: not called ---- */

	/** A record of a type in @p records, valid during the call only. */
	void (*on_record)(const struct netobs_record *record, void *user);
	/** Types of records that on_record gets: 1 << enum netobs_record_type of each; 0: flows.
	 *  Alerts: with @p rtt, a connection has broken a rule of netobs_alerts_set(); with NETOBS_DROPS,
	 *  a flow has, and its alert comes before its record. With @p rtt, rules take another 384 bytes of the
	 *  kernel's memory for each connection, and 1.3 MiB; rules about drops take 2 MiB of the process.
	 *  Mappings: with NETOBS_NAT, one begins or has ended (mapping.h); those that are older than the
	 *  context come when the kernel's list has them, and those in use when the context stops are
	 *  not reported as ended. */
	uint64_t records;
	/** All records of a drain have been delivered. */
	void (*on_interval)(void *user);
	/** A log line, without newline; NULL: nothing is logged. */
	void (*on_log)(int level, const char *message, void *user);
	void *user; /**< passed back to every callback */

	/* ---- Errors and tests ---- */

	/** Buffer for the reason why netobs_new() failed; NULL: none. Later errors
	 *  are the context's: netobs_last_error(). */
	char (*error)[NETOBS_ERROR_MAX];
	/** Features to treat as absent, so that the path for older kernels is
	 *  taken: bits are 1 << enum netobs_feature_id (probe.h). */
	uint64_t disable_features;

	/** With NETOBS_CONTAINER_NAMES: the root directory of the host, below which the files of
	 *  container runtimes are, for a program that runs in a container itself; NULL: "/". */
	const char *container_root;
};

/**
 * Make a context. Checks the options; touches nothing in the kernel.
 *
 * @param opts     copied; may go away afterwards. NULL: all defaults
 * @param ret_ctx  the context, yours: netobs_free()
 * @return 0; -EINVAL: an option is wrong, the error text names it; -E2BIG: the filter is
 *         too long; -ENOMEM
 */
NETOBS_API int netobs_new(const struct netobs_opts *opts,
			  struct netobs **ret_ctx);

/**
 * Load the BPF programs, attach them, and begin to observe. A context begins to count at all interfaces
 * that are there from the same moment on; those that would take longer than 1.5 s, and were not
 * named, follow in the background (docs/kernels.md). It needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (or
 * root), and CAP_SYS_ADMIN for `netns:` interfaces.
 *
 * On failure nothing stays attached and the observer can only be freed. If detaching takes
 * longer than 2 s, it continues in the background after the return.
 *
 * @return 0; -EPERM: privileges are missing; -ENODEV: a named interface does
 *         not exist; -ENOTSUP: the kernel lacks a required feature; -EBUSY:
 *         another process uses @p persist;
 *         -EALREADY: started before; -EINVAL: @p netobs is NULL; others from the kernel
 */
NETOBS_API int netobs_start(struct netobs *netobs);

/**
 * Why the last call that failed did, as a sentence without newline; "" when none
 * has. -ECANCELED and -EINTR are no failures.
 *
 * @return never NULL; valid until the next call with this observer
 */
NETOBS_API const char *netobs_last_error(const struct netobs *netobs);

/**
 * The file descriptor to wait for, with poll(2) or epoll(7), for reading.
 * Constant over the life of the observer, and the observer's: do not close it.
 *
 * @return it; -EINVAL: @p netobs is NULL
 */
NETOBS_API int netobs_fd(const struct netobs *netobs);

/**
 * Process everything that is ready, without blocking for more to come. Long
 * work, such as a drain, is cut into slices: the descriptor stays readable until all is done.
 *
 * Callbacks run on the calling thread. With this observer, they may call netobs_stop() and functions that
 * take a const context, such as netobs_stats_get() and netobs_connections(), and no others; for other kinds
 * than contexts, see there.
 *
 * @return number of records or packets delivered, alerts and mappings included (0 is normal);
 *         -ECANCELED: stopped by netobs_stop(): all that the programs saw has been
 *         delivered, they are detached (see there), nothing more will come;
 *         -EINVAL: not started; others from the kernel
 */
NETOBS_API int netobs_dispatch(struct netobs *netobs);

/**
 * Wait up to @p timeout_ms for something to process, then netobs_dispatch().
 *
 * @param timeout_ms  milliseconds; -1: no limit; 0: do not wait
 * @return as netobs_dispatch(); -EINTR: a signal came first
 */
NETOBS_API int netobs_poll(struct netobs *netobs, int timeout_ms);

/**
 * Ask the observer to stop. The next netobs_dispatch() ends the counting, of a context at all
 * interfaces. This call and the following ones deliver what was counted until then, in
 * slices, while the programs are detached in the background. After that netobs_dispatch()
 * returns -ECANCELED; until then, call it whenever netobs_fd() polls readable. If
 * detaching takes longer than 2 s, it continues in the background. If a program is being
 * attached when the stop begins, -ECANCELED waits for that, 10 s at most.
 *
 * With @p persist nothing is detached: the same calls deliver the packets counted until
 * then, and the next context delivers the packets that pass later.
 *
 * The only function of an observer that may be called from a signal handler, and from any
 * thread. NULL is fine.
 */
NETOBS_API void netobs_stop(struct netobs *netobs);

/**
 * Detach everything and free. With many interfaces this blocks for up to 2 s, and continues
 * in the background. Packets that were counted but not delivered are dropped. To avoid
 * both, first call netobs_stop(), and netobs_dispatch() until it returns -ECANCELED. With
 * @p persist nothing is detached, and the next context counts those packets as lost.
 * NULL is fine.
 */
NETOBS_API void netobs_free(struct netobs *netobs);

/**
 * Drain now, without waiting for the interval: deliver everything seen so far.
 * Blocks for a few milliseconds, until no program writes to the tables that are read.
 *
 * @return number of flow records delivered; -EINVAL: not started; -ECANCELED: it has
 *         stopped
 */
NETOBS_API int netobs_drain(struct netobs *ctx);

/**
 * Begin to change the options of a started context, without a restart: @p opts is as for
 * netobs_new(). These may differ: @p interfaces, @p exclude, @p interval_ms,
 * @p active_timeout_ms, @p idle_timeout_ms, @p sampling and @p sampling_mode; @p filter,
 * @p rules and @p default_action, if there was a filter or rules before; and @p error, which is
 * not used. All others must be as before. If an option is wrong or cannot be applied, nothing
 * changes. Named interfaces and namespaces must exist, unless they were named before.
 *
 * A thread compiles the rules and loads programs with them, while everything goes on as before.
 * netobs_dispatch() applies the change once that is done and no drain is under way; it blocks
 * only for programs of namespaces and kinds of link that are new, some milliseconds each.
 * netobs_free() waits while programs are being loaded. To wait for the change, call
 * netobs_poll() while netobs_change_result() returns -EINPROGRESS.
 *
 * Interfaces that stay selected are not touched: each of their packets is counted, once.
 * Programs are attached to others and detached in the background, as when interfaces come and
 * go; netobs_stats.interfaces is the number that has them. A namespace is followed while an
 * interface of it is selected.
 *
 * Rules are replaced while they are in use. At each interface, every packet is judged by the
 * old rules or by the new ones, as a whole; the moment differs from interface to interface.
 * Rules that are in both lists keep their counts.
 *
 * A new sampling replaces the old one in the same way, and no packet is lost: records name
 * the sampling of their packets, so a flow may have records of both. A packet that passes one
 * interface before the change and another after it may be in both. A new sampling sometimes
 * takes two drains, which may deliver flow records.
 *
 * The current interval ends when its new length is over; time-outs apply from the next drain on.
 *
 * @param opts  copied; NULL: all defaults
 * @return 0: netobs_change_result() has the result later; -EINVAL: an option is wrong, or the
 *         context was not started; -ENOTSUP: an option cannot change, the error text names it;
 *         -EBUSY: a change is under way; -ECANCELED: it was stopped; -ENOMEM. Nothing changes
 *         then.
 */
NETOBS_API int netobs_change_begin(struct netobs *ctx,
				   const struct netobs_opts *opts);

/**
 * The result of the last change that was begun.
 *
 * @return 0: it was applied, or there was none; -EINPROGRESS: it is under way; -ECANCELED: the
 *         context was stopped first; -EINVAL: @p ctx is NULL, or an option is wrong; -EBUSY:
 *         programs with earlier rules are still being attached, or earlier samplings are still
 *         in use; -ENODEV: a named interface does not exist; -EOPNOTSUPP: its kind is not
 *         supported; -ENOTSUP, -ENOMEM; others as from netobs_start()
 */
NETOBS_API int netobs_change_result(const struct netobs *ctx);

/**
 * Read how many packets a rule has decided about, at each point that they crossed, and their
 * bytes from the IP header on. The counts are read from the kernel, so they may be ahead of
 * netobs_stats, which is as of the last drain. The sum over all rules is the packets observed,
 * filtered and unparsed.
 *
 * @param rule  in the order of netobs_opts.rules; then the default action; then all rules
 *              that changes have replaced
 * @return 0; -ENOENT: a number beyond these, or the context has no rules, or was not
 *         started; -EINVAL: an argument is NULL; others from the kernel
 */
NETOBS_API int netobs_rule_count_get(const struct netobs *ctx, uint32_t rule,
				     struct netobs_count *ret_count);

/**
 * Read how many of the packets that a rule accepted were left out by sampling, and their bytes from
 * the IP header on: a part of netobs_rule_count_get(). The sum over all rules is
 * netobs_stats.sampled_out.
 *
 * @param rule  as for netobs_rule_count_get()
 * @return the same
 */
NETOBS_API int netobs_rule_sampled_out_get(const struct netobs *ctx,
					   uint32_t rule,
					   struct netobs_count *ret_count);

/**
 * Run the packets of capture files through the same BPF programs, merged in the order of time,
 * and deliver the flows with the files' own times. For a context that was not started;
 * blocks until the end of all files or netobs_stop(). After an error in one file, the others
 * are read to their ends all the same. A flow that is in several files is one flow; flows without
 * Ethernet headers have no MAC addresses.
 *
 * Where pcapng names the interface of each packet, @p interfaces and @p exclude select, and a packet
 * that passed several of them counts once, unless NETOBS_PER_INTERFACE is set. A warning has the number
 * of packets that a capture cut before their ports. Interfaces of a pcapng file may differ in link
 * type: packets of one that is not supported count as not IP, and a warning has their number.
 *
 * Files: pcap and pcapng, of link types Ethernet, raw IP, Linux cooked v1 and
 * v2, BSD null and loop. Needs the privileges of netobs_start() but attaches
 * nothing.
 *
 * @param paths  the files; one of them may be "-", standard input
 * @param n      how many
 * @return number of flow records delivered; -ENOENT, -EACCES: cannot open;
 *         -EBADMSG: not a capture file, or it ends in mid-packet (the flows up
 *         to there have been delivered); -EPROTONOSUPPORT: link type of all interfaces;
 *         -ECANCELED: stopped; -EINVAL: no path, or "-" more than once
 */
NETOBS_API int netobs_replay_files(struct netobs *ctx, const char *const *paths,
				   size_t n);

#ifdef __cplusplus
}
#endif

#endif
