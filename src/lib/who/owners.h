/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The processes that sockets of this host belong to, of TCP and UDP, in all network namespaces.
 * Programs store the process with each socket. Before owners are looked up, a list of all sockets
 * is read; sockets that have ended come through a ring buffer.
 */
#ifndef NETOBS_WHO_OWNERS_H
#define NETOBS_WHO_OWNERS_H

#include "base/slots.h"
#include "host/host.h"
#include "host/netns.h"
#include "host/rtnl.h"
#include "base/log.h"
#include "bpf/session.h"
#include "sessions.h"

#include <netobs/record.h>
#include <stdbool.h>
#include <stdint.h>

/* Names of processes that are longer than the kernel keeps them. */

enum { PROCESS_NAME_SIZE = 64 };

/**
 * Find the whole name of a process in what the programs read.
 *
 * @param comm      the beginning of the name; it may fill the array
 * @param ret_name  "": the name is not longer, is not known, or does not fit
 */
void process_name_of(const struct session_name *name,
		     const char comm[SESSION_COMM_LEN],
		     char ret_name[PROCESS_NAME_SIZE]);

/** As process_name_of(), of the process that has a socket. @param names_fd  the map session_names */
void process_name_find(int names_fd, const struct session_owner *owner,
		       char ret_name[PROCESS_NAME_SIZE]);

/*
 * Sockets by their addresses, and the processes that they belong to: open sockets, and for a while
 * those that were closed. Several may have had the same addresses and ports, one after the other or at
 * the same time, so a socket is found by the time of its packets, too.
 *
 * A round is a list of all open sockets: a socket that was not seen since the round began has ended.
 */

/* Remote and remote_port of unconnected sockets are 0. The struct has no padding. */
struct owner_key {
	uint8_t local[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t remote[16];
	uint16_t local_port;
	uint16_t remote_port;
	uint32_t netns; /* inode */
	uint32_t protocol;
	uint32_t reserved;
};

struct owner_entry {
	struct owner_entry *next;
	struct owner_key key;
	uint64_t cookie; /* of the socket */
	int64_t from_ns; /* as the programs stamp; 0: unknown */
	int64_t to_ns;	 /* INT64_MAX: it is open */
	int64_t seen_ns; /* the last time at which it is known to have been open, or to have ended */
	struct session_owner owner; /* of a crowd: the owner common to all its sockets, or none */
	bool is_crowd;
};

typedef void owner_visit_fn(const struct owner_entry *entry, void *user);

enum { OWNER_KEY_WORDS = sizeof(struct owner_key) / sizeof(uint32_t) };

/* Buckets grow one by one: of @level, a power of two, those below n_buckets - level are split. */
struct owner_table {
	struct owner_entry **buckets;
	struct owner_entry *unused; /* a list */
	struct owner_slab *slabs;
	uint32_t n_buckets, level;
	uint32_t count, max;
	uint64_t refused; /* sockets that found no room */
	int64_t begun_ns; /* when the round began */
	int64_t since_ns; /* sockets that ended before are not known; 0: all are */
	uint32_t secret[OWNER_KEY_WORDS];
};

/** @return 0; -ENOMEM; -errno: no random numbers */
int owner_table_init(struct owner_table *table, uint32_t max);
void owner_table_done(struct owner_table *table);

/** Add or update the socket that @event, of which SESSION_OWNED_SIZE bytes matter, is about. */
void owner_table_note(struct owner_table *table,
		      const struct session_event *event);

/** A round begins; @now_ns has the clock of the programs. */
void owner_table_begin_round(struct owner_table *table, int64_t now_ns);

/**
 * The list is complete: process a slice of the table. Sockets that were not seen since
 * owner_table_begin_round() have ended, at @now_ns at the latest; those that ended before
 * @before_ns are removed.
 *
 * @param cursor  0 to begin with
 * @param visit   called with @user for each socket that stays; or NULL
 * @return false: the table has been processed
 */
bool owner_table_sweep(struct owner_table *table, uint32_t *cursor,
		       int64_t now_ns, int64_t before_ns, owner_visit_fn *visit,
		       void *user);

enum owner_found {
	OWNER_NONE,    /* no socket */
	OWNER_UNKNOWN, /* a socket whose process is not known */
	OWNER_FOUND,
	OWNER_SEVERAL, /* sockets of several processes had these addresses then, or may have */
};

/**
 * Find the socket of packets that came from @first_ns to @last_ns: the one that was open then, or,
 * for TCP, else the last one before.
 */
enum owner_found owner_table_find(const struct owner_table *table,
				  const struct owner_key *key, int64_t first_ns,
				  int64_t last_ns,
				  const struct owner_entry **ret_entry);

/** @return whether it is certain that the socket was open from @first_ns to @last_ns */
bool owner_was_open_throughout(const struct owner_entry *entry,
			       int64_t first_ns, int64_t last_ns);

struct ring_buffer;

enum { OWNERS_CACHED = 64 };

struct owners {
	const struct log *log;
	struct session_programs programs;
	struct ring_buffer *ring;
	struct owner_table table;
	struct cgroups_upkeep upkeep;
	int counts_fd, names_fd;
	uint64_t lost; /* lost events that were logged */
	enum {
		OWNERS_AT_REST,
		OWNERS_LISTING,
		OWNERS_READING, /* sockets that ended during the list */
		OWNERS_SWEEPING,
		OWNERS_TIDYING /* unused control groups are being removed */
	} phase;
	bool is_listed; /* all were listed; else no socket is taken for ended */
	uint32_t cursor;
	int64_t keep_ns; /* how long sockets stay in the table after their end */
	int64_t slice_end_ns;
	struct container_names *names; /* owned by the caller; NULL: none */
	owner_visit_fn *visit; /* called for each socket, once in a round */
	void *visitor;
	struct {
		struct session_cgroup_key key;
		bool is_known;
		struct cgroup_info info;
	} cache[OWNERS_CACHED];
};

/**
 * Load and attach the programs, and list the existing sockets, which blocks while all open files
 * are visited.
 *
 * @param disabled  as netobs_opts.disable_features
 * @param max       limit of sockets in the table
 * @param visit     called by owners_step(), with @visitor, for each socket in the table, once in a
 *                  round in which all could be listed
 * @return 0, or -errno, which is logged: there is nothing to close
 */
int owners_open(struct owners *owners, uint64_t disabled, uint32_t max,
		owner_visit_fn *visit, void *visitor, const struct log *log);

/** A struct of zeroes stays as it is. */
void owners_close(struct owners *owners);

/** @return a descriptor that is readable when owners_read() is due */
int owners_fd(const struct owners *owners);

/** Read the ring buffer, for some milliseconds. @return whether there is more */
bool owners_read(struct owners *owners);

/**
 * Begin to update the table.
 *
 * @param keep_ns  how long sockets stay in the table after their end
 */
void owners_begin(struct owners *owners, int64_t keep_ns);

/**
 * Work on the update for a millisecond.
 *
 * @param ret_wait_ms  set if the next call had better wait
 * @return false: the table has all sockets
 */
bool owners_step(struct owners *owners, uint32_t *ret_wait_ms);

/**
 * Add sockets that are open now, until they are all there or a read ends after @budget_ns. Does nothing
 * during an update of the table.
 */
void owners_glance(struct owners *owners, int64_t budget_ns);

/** Fill @ret_process from the owner of a socket. */
void owners_describe(struct owners *owners, const struct session_owner *owner,
		     struct netobs_process *ret_process);

/* ---- Namespaces of sockets --------------------------------------------------------------- */

/*
 * The network namespaces that sockets are in, by inode. who.c asks two things about them: where a
 * pair of interfaces leads to, if the host does not follow that namespace, and whether an
 * interface there has an address (spaces_have()).
 *
 * A pair names the namespace of its other end only by an id of rtnetlink(7). The kernel tells no
 * namespace for an id, but it tells the id of a namespace whose descriptor it is given. So a search
 * opens namespaces until no pair is left without an inode. The cheapest ways come first: a process
 * that has a socket there; the names of ip-netns(8), Docker and CNI; and any process, one for each
 * namespace.
 *
 * Say a container's interface is eth0, and its peer on the host is veth7, with id 3. A round lists
 * the sockets, one of which, in namespace 4026532513, belongs to process 871 (spaces_note()). The
 * search opens /proc/871/ns/net, and learns that the host's id for it is 3: so packets of veth7
 * come from sockets in 4026532513. While it is open, its addresses are read, too.
 *
 * A search that finds nothing has visited all processes, so the next one waits longer.
 */

struct space {
	uint32_t inode;
	uint32_t pid; /* of a process with a socket there */
	uint32_t round; /* the round in which the addresses were read, or could not be */
	bool has_addresses;
	struct addresses addresses;
};

enum {
	SPACES_ASKED = 1024, /* namespaces that a search remembers */
};

struct spaces {
	const struct host *host;
	const struct log *log;
	uint32_t round;
	/* The state of a search. */
	enum { SPACES_AT_REST, SPACES_OWNERS, SPACES_WALK } phase;
	uint32_t cursor; /* in the table */
	struct netns_walk walk;
	uint32_t before; /* pairs that it is to resolve */
	uint32_t asked[SPACES_ASKED];
	uint32_t wanted; /* pairs that the last search has not resolved */
	uint32_t wait_s; /* until the next search; 0: it may begin at once */
	int64_t searched_ns; /* CLOCK_BOOTTIME */
	bool is_denied; /* namespaces of other processes cannot be opened */
	bool is_denial_logged;
	struct slots table; /* of struct space, by inode */
};

void spaces_done(struct spaces *spaces);

/** The table of sockets is about to be updated. */
void spaces_begin_round(struct spaces *spaces);

/** Note a socket of the updated table. An owner_visit_fn. */
void spaces_note(const struct owner_entry *entry, void *spaces);

/** Note a process with a socket in the namespace with that inode. */
void spaces_note_process(struct spaces *spaces, uint32_t inode, uint32_t pid);

/** The table of sockets is updated: begin to find namespaces that pairs of the host lead to. */
void spaces_begin_search(struct spaces *spaces);

/** Work on the search for about a millisecond. @return false: it is done */
bool spaces_step(struct spaces *spaces);

/** @return whether an interface of that namespace has the address, as far as is known */
bool spaces_have(struct spaces *spaces, uint32_t inode,
		 const uint8_t address[16]);

#endif
