/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The processes at the ends of flows. A packet that leaves a namespace comes from a socket in it,
 * or was forwarded; a packet that enters goes to a socket in it, or will be forwarded. Behind a
 * veth interface, or another pair, is another namespace, whose sockets are searched, too: so
 * packets of containers are attributed on the host. who.c has an example.
 */
#ifndef NETOBS_WHO_WHO_H
#define NETOBS_WHO_WHO_H

#include "bpf/types.h"
#include "owners.h"

struct who_options {
	uint64_t disabled; /* as netobs_opts.disable_features */
	uint32_t max;	   /* limit of sockets in the table */
	int64_t keep_ns;   /* how long sockets that ended are known */
	struct container_names *names; /* NULL: without */
};

struct who {
	const struct host *host;
	int64_t keep_ns;
	struct owners owners;
	struct spaces spaces;
	enum { WHO_AT_REST, WHO_SOCKETS, WHO_SPACES } phase;
	int64_t glance_due_ns;	       /* when who_glance() may look again */
	struct netobs_process ends[2]; /* of the record that is being filled */
};

/* Per-flow data: the owners of the sockets at its ends. Zeroes in a new flow. */
struct who_ends {
	struct who_end {
		uint64_t cookie; /* of the socket */
		struct session_owner owner;
		bool is_known;
		bool is_ambiguous; /* sockets of several processes were possible */
	} ends[2];		   /* source, destination */
};

/** Load and attach the programs. @return 0, or -errno, which is logged */
int who_init(struct who *who, const struct host *host,
	     const struct who_options *options, const struct log *log);

/** A struct of zeroes stays as it is. */
void who_done(struct who *who);

static inline bool who_is_on(const struct who *who)
{
	return who->host;
}

/** Begin to update the sockets for the packets of the generation that ended; see owners_begin(). */
void who_begin(struct who *who);

/** Work on the update for a millisecond, as owners_step(). @return false: it is done */
bool who_step(struct who *who, uint32_t *ret_wait_ms);

/**
 * Look for sockets that were opened since the last generation ended. Takes 2 ms at most, and a
 * twentieth of the time, however often it is called.
 */
void who_glance(struct who *who);

/* The callbacks of a struct flow_extra, with struct who_ends as data and struct who as context. */
void who_note(void *ends, const struct flow_entry *entry, void *who);
void who_join(void *ends, const void *from, void *who);
void who_fill(void *ends, struct netobs_flow *record, void *who);

/**
 * Find the process of a socket as of now.
 *
 * @param inode      its network namespace
 * @param is_source  it sends packets with that key; else it receives them
 * @return whether it is known
 */
bool who_find(struct who *who, uint32_t inode, const struct flow_key *key,
	      bool is_source, int64_t now_ns, struct netobs_process *ret_process);

/**
 * Find the process of the socket of one packet, as who_find(). A packet later than the latest
 * who_begin() may be of a socket that is not known yet, so a socket that had ended before is not
 * taken for it.
 */
bool who_find_packet(struct who *who, uint32_t inode,
		     const struct flow_key *key, bool is_source,
		     int64_t time_ns, struct netobs_process *ret_process);

#endif
