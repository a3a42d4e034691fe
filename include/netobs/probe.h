/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file probe.h
 * Finds the features that the kernel and the privileges allow, by trying them.
 */
#ifndef NETOBS_PROBE_H
#define NETOBS_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Features; also the bits of netobs_opts.disable_features. */
enum netobs_feature_id {
	NETOBS_FEATURE_BPF = 0, /**< bpf(2) at all: privileges, kernel config */
	NETOBS_FEATURE_PROGRAMS = 1, /**< the flow programs pass the verifier */
	NETOBS_FEATURE_TCX = 2,	     /**< tcx links (6.6) */
	NETOBS_FEATURE_CLSACT = 3,   /**< clsact qdisc and BPF filter */
	NETOBS_FEATURE_TEST_RUN = 4, /**< BPF_PROG_TEST_RUN: replay */
	NETOBS_FEATURE_BTF = 5,	     /**< /sys/kernel/btf/vmlinux */
	NETOBS_FEATURE_NETNS = 6,    /**< entering other network namespaces */
	/** Grace periods can be expedited while tcx links change. */
	NETOBS_FEATURE_EXPEDITE = 7,
	NETOBS_FEATURE_SESSIONS = 8, /**< TCP sockets are followed (5.12) */
	NETOBS_FEATURE_SESSION_IO = 9, /**< processes that send and receive (6.3) */
	/** Processes that accept connections: cgroup v2 (5.8) */
	NETOBS_FEATURE_SESSION_ACCEPT = 10,
	NETOBS_FEATURE_NAT =
		11, /**< conntrack, and where the kernel has its entries */
	/** The addresses that sockets ask for, before BPF programs of others replace them: by cgroup v2 (6.17), or
	 *  traced functions (6.2) */
	NETOBS_FEATURE_CONNECT = 12,
	NETOBS_FEATURE_DROPS = 13, /**< packets that the kernel drops are seen */
	NETOBS_FEATURE_DROP_REASONS = 14, /**< the kernel states why (5.17) */
	/** Points that bytes of TCP connections pass in the kernel are seen */
	NETOBS_FEATURE_TRACE = 15,
	/** Points where processes write to sockets, and where they can read, are seen (6.3) */
	NETOBS_FEATURE_TRACE_SOCKETS = 16,
	/** Netfilter's hooks are seen (6.4) */
	NETOBS_FEATURE_TRACE_NETFILTER = 17,
	/** Sockets are listed by what BPF keeps with them (5.9): also those that no process has open */
	NETOBS_FEATURE_SOCKET_LISTS = 18,
	/** Packets are seen when they leave queueing disciplines: times of `rtt` begin then */
	NETOBS_FEATURE_QUEUES = 19,
	NETOBS_FEATURES
};

/** The importance of a feature. */
enum netobs_feature_need {
	NETOBS_NEED_REQUIRED, /**< nothing works without it */
	NETOBS_NEED_EITHER,   /**< tcx or clsact: one suffices */
	NETOBS_NEED_OPTIONAL  /**< `without` describes the restriction */
};

/** Size of netobs_feature.refusal. */
#define NETOBS_REFUSAL_MAX 192

/** One feature and the outcome of trying it. */
struct netobs_feature {
	const char *name;	 /**< "tcx" */
	const char *description; /**< "tcx links" */
	const char *without;	 /**< consequence of its absence */
	uint8_t need;		 /**< enum netobs_feature_need */
	uint8_t available;
	uint8_t reserved[2];
	int32_t error; /**< why not: negated errno; 0 when available */
	/** Why not, if it is that: capabilities(7) that this thread lacks, as
	 *  1 << CAP_BPF and so on. */
	uint64_t missing_capabilities;
	/** "PROGRAM: the last line of the verifier's log", where the kernel refused a program;
	 *  "PROGRAM" if that log has no reason; "": it is not that */
	char refusal[NETOBS_REFUSAL_MAX];
};

/**
 * Try all features. Makes maps and programs, and attaches these in a network
 * namespace of its own; without CAP_SYS_ADMIN, it makes only requests that the kernel
 * must refuse, and attaches nothing. Leaves nothing behind, and needs no privileges
 * beyond those of netobs_start(). Programs that follow sockets are attached for a moment.
 *
 * The caller's array has @p n entries of @p size bytes: NETOBS_FEATURES and
 * sizeof(struct netobs_feature). So a caller may be older or newer than the library. Entries
 * that the library has no feature for are 0.
 *
 * @param disable       features to report as absent: 1 << enum netobs_feature_id
 * @param on_log        receives what is logged meanwhile, the verifier's logs of refused programs
 *                      among it, at NETOBS_LOG_DEBUG; or NULL
 * @param user          passed to it
 * @param ret_features  filled; the strings are static
 * @return 1: flows can run here; 0: they cannot; -EINVAL: @p ret_features is NULL
 */
NETOBS_API int netobs_probe(uint64_t disable,
			    void (*on_log)(int level, const char *message,
					   void *user),
			    void *user, struct netobs_feature *ret_features,
			    size_t n, size_t size);

/** Kinds of programs and filters that may hide packets; netobs_shadow.kind. */
enum netobs_shadow_kind {
	NETOBS_SHADOW_NONE = 0,
	NETOBS_SHADOW_XDP = 1,	 /**< an XDP program; ingress only */
	NETOBS_SHADOW_TCX = 2,	 /**< a tcx program that comes first */
	NETOBS_SHADOW_CLSACT = 3 /**< a filter of the clsact qdisc */
};

/**
 * A program or filter that runs before the programs of netobs on an interface, in one direction.
 * Packets that it drops, redirects or finally passes are not observed; netobs does not know
 * whether it does so. Allocated by the library; later versions add fields at the end.
 */
struct netobs_shadow {
	uint32_t ifindex;
	uint8_t direction;   /**< NETOBS_INGRESS or NETOBS_EGRESS */
	uint8_t kind;	     /**< enum netobs_shadow_kind */
	uint16_t others;     /**< more of them, after this one */
	uint32_t program_id; /**< 0: not a BPF program */
	uint32_t priority;   /**< NETOBS_SHADOW_CLSACT */
	char interface[16];
	char name[16]; /**< of the program, or the kind of filter; "": not known */
};

/**
 * Find the programs and filters that run before netobs on the interfaces of the calling
 * thread's network namespace, or would if netobs were attached now. Which tcx programs
 * are netobs' own is known only with CAP_SYS_ADMIN.
 *
 * @param disable    as for netobs_probe(): NETOBS_FEATURE_TCX matters
 * @param on_shadow  called for each; its argument is valid during the call only
 * @return how many; or -errno
 */
NETOBS_API int
netobs_shadows(uint64_t disable,
	       void (*on_shadow)(const struct netobs_shadow *shadow, void *user),
	       void *user);

#ifdef __cplusplus
}
#endif

#endif
