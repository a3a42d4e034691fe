/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file persist.h
 * Programs and tables that a context with netobs_opts.persist leaves in the kernel, and their
 * removal.
 */
#ifndef NETOBS_PERSIST_H
#define NETOBS_PERSIST_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/stats.h>
#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The directory of the service. */
#define NETOBS_PERSIST_DIR "/sys/fs/bpf/netobs"

/** A set of programs and tables that is pinned in a directory. */
struct netobs_persisted {
	size_t sz; /**< sizeof(struct netobs_persisted), set by the caller */
	char version[32]; /**< of netobs that made it; "": it is incomplete */
	uint32_t owner;	  /**< the process that uses it; 0: none */
	uint32_t links; /**< directions of interfaces where its programs are */
	uint32_t is_readable; /**< 1: netobs_start() of this version goes on with it */
	uint32_t reserved; /**< 0 */
	/** Packets that have passed its programs since tables were last read, filtered and
	 *  unparsed ones among them. */
	struct netobs_count waiting;
};

/**
 * Look at the set that a context has pinned. Changes nothing.
 *
 * @param path           as netobs_opts.persist; NULL: NETOBS_PERSIST_DIR
 * @param ret_persisted  as for netobs_stats_get()
 * @return 0; -ENOENT: there is nothing; -ENOTSUP: it is not in a BPF file system;
 *         -EINVAL: @p ret_persisted is NULL, or sz is too small; -EACCES, -EPERM: it takes
 *         more privileges; others from the kernel
 */
NETOBS_API int netobs_persisted_get(const char *path,
				    struct netobs_persisted *ret_persisted);

/**
 * Detach the programs that a context has left, and remove their tables. Packets in these are
 * lost. When it returns, none of the programs runs any more. The thread that calls it may be in
 * another network namespace meanwhile.
 *
 * @param ret_persisted  the removed set; NULL: not wanted
 * @return 0; -EBUSY: a process uses it, ret_persisted->owner; -EPERM, -EACCES: it takes
 *         more privileges (CAP_BPF, CAP_NET_ADMIN; CAP_SYS_ADMIN to enter other network
 *         namespaces), and some programs are still attached; others as from
 *         netobs_persisted_get()
 */
NETOBS_API int netobs_persisted_remove(const char *path,
				       struct netobs_persisted *ret_persisted);

#ifdef __cplusplus
}
#endif

#endif
