/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A set of maps and links that outlives its process. It is pinned in a directory of a BPF
 * file system, which the process that uses it has locked:
 *
 *	state		what the set consists of, and what has been reported of it
 *	namespaces	the network namespaces that keys have numbers of
 *	interfaces	their interfaces, for flows of those that disappear meanwhile
 *	maps/NAME	the maps of the flow programs
 *	links/NAME	links and jumps, see attach/attach.h
 *
 * `state` is removed first and pinned last, so a set with it is complete. The programs are
 * not pinned: links hold them, and a process replaces them by its own.
 */
#ifndef NETOBS_ENGINE_PINNED_H
#define NETOBS_ENGINE_PINNED_H

#include "base/log.h"
#include "bpf/store/hash.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Increase this when a struct of src/bpf/types.h in these maps changes, or its meaning: sets of
 * other layouts are not read.
 */
enum { PINNED_LAYOUT = 8 };

enum { PINNED_NO_TCX = 1 << 6, PINNED_NO_CLSACT = 1 << 7 };

enum {
	PINNED_NETNS_MAX = 4096,
	PINNED_NETIFS_MAX = 16384,
	PINNED_PATH_MAX = 512,
	PINNED_WHY_MAX = 128,
};

struct pinned_state {
	/* Members up to seen_drained are the same in all versions, to count packets of unreadable sets. */
	__u64 magic;
	__u32 layout;
	__u32 owner; /* pid of the process that uses the set, or used it last */
	char version[32];
	__u32 n_cpus;		    /* entries of cpu_states */
	__u32 cpu_bytes;	    /* size of an entry */
	__u32 seen_at[GENERATIONS]; /* offsets in an entry: struct count of packets seen */
	struct count seen_drained; /* packets seen that were drained */

	/* Members as of layout 5. */
	__u32 lanes;
	__u32 l1_buckets;
	__u32 log_slots;
	__u32 overflow_room;
	__u32 overflow_part;
	__u64 max_flows; /* options that the overflow tables, and links, were made with */
	__u64 max_memory;
	__u32 attach_order;
	__u32 attach_kinds; /* kinds that links may not have: bits PINNED_NO_TCX, _CLSACT */
	__u32 next_rule_slot; /* the next one that no rule has used */
	__u32 has_rules; /* since the set was made, rules have counted all packets */
	__u32 n_netns;		  /* indexes of namespaces in keys are lower */
	__u32 current;		  /* index of the valid books */
	struct rate rates[RATES]; /* by the numbers that keys contain */
	struct hash_secret secret;

	/* A drain writes the books that are not valid, then `current`: all members change at once. */
	struct pinned_books {
		struct counters drained[GENERATIONS]; /* counters as of the last drain */
		struct count unclaimed; /* packets without a lane, as of the last drain */
		struct count unreported; /* drained, but in no record yet */
	} books[2];
};

/* Entries of namespaces and interfaces; their layout is the same in all versions. */
struct pinned_netns {
	__u32 inode;
	char name[252]; /* "": the process's own */
};

struct pinned_netif_key {
	__u32 netns; /* index of the namespace */
	__u32 ifindex;
};

struct pinned_netif {
	char name[16];
	__u32 master;
	__u32 link;
	__s32 link_nsid;
	__u16 hardware;
	__u16 vlan_id;
	__u8 type;
	__u8 observed;
	__u16 link_netns; /* index of the namespace that `link` is in; or NETNS_NONE */
};

struct bpf_object;
struct shared_fd;

struct pinned {
	const struct log *log;
	char *path;
	int dir_fd;  /* -1: nothing is pinned */
	int lock_fd; /* descriptor of the folder of links, which has the lock */
	struct shared_fd *links;
	bool had_links; /* links of an earlier process were found: its programs may count */
	struct pinned_state *state; /* mapped; NULL: no readable set */
	size_t state_bytes;
	int netns_fd, netifs_fd;

	/* For a set that was discarded because its layout is not readable: */
	struct pinned_state *former; /* a copy of the members common to all layouts */
	void *former_cpus;	     /* its cpu_states, mapped */
};

#define PINNED_NONE       \
	((struct pinned){ \
		.dir_fd = -1, .lock_fd = -1, .netns_fd = -1, .netifs_fd = -1 })

/**
 * Make the directory and lock it, waiting a second for a process that is ending.
 *
 * @ret_why: for -EPERM: its owner and mode, as users other than root and that of this process can
 *           change its files; else unchanged
 * @return 0; -EBUSY: another process has locked it, which is logged; -ENOTSUP: it is not in a BPF file
 *         system; -ENOENT: its parent directory does not exist; others as from mkdir(2), open(2)
 */
int pinned_open(struct pinned *pinned, const char *path, const struct log *log,
		char ret_why[PINNED_WHY_MAX]);

/** Open a set to look at it, locked by another process or not. @return as pinned_open(); -ENOENT: none */
int pinned_look(struct pinned *pinned, const char *path, bool *ret_is_locked);

/* Close the set, which stays pinned. */
void pinned_close(struct pinned *pinned);

/** @return whether the maps have the layout of this version */
bool pinned_is_readable(const struct pinned *pinned);

/** @return a descriptor of the map, or -errno */
int pinned_get_map(const struct pinned *pinned, const char *name);

/** Pin a map, replacing a pinned one of that name. @return 0, or -errno */
int pinned_put_map(const struct pinned *pinned, const char *name, int fd);

/**
 * Before an object is loaded: make it use the maps of the set.
 *
 * @return 0; -ESTALE: a map is missing or differs; others from the kernel
 */
int pinned_reuse_maps(const struct pinned *pinned,
		      const struct bpf_object *object);

/** Pin all maps of an object. @return 0, or -errno */
int pinned_put_maps(const struct pinned *pinned, const struct bpf_object *object);

/* Remove a set that cannot be read, except its links. */
void pinned_discard(struct pinned *pinned);

/**
 * Make and pin the state, as a copy of @state, and the lists of namespaces and interfaces.
 *
 * @return 0, or -errno
 */
int pinned_publish(struct pinned *pinned, const struct pinned_state *state);

/** @return packets that the discarded set has seen since its last drain */
struct count pinned_count_former(const struct pinned *pinned);

/* @return packets that this set has seen since its last drain */
struct count pinned_count_waiting(const struct pinned *pinned);

/**
 * Remove the set except its directory, which may belong to a package, and pinned links.
 *
 * @return 0, or -errno: it is not removed entirely
 */
int pinned_remove(struct pinned *pinned);

/** @return whether the set has a namespace of this index */
bool pinned_get_netns(const struct pinned *pinned, __u32 index,
		      struct pinned_netns *ret_netns);

#endif
