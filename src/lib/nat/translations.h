/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Names the addresses before and after NAT in records: a feature with extra data per flow, which
 * looks up each entry of a flow in the table of translations. It uses a translation only if no
 * other one is as likely: the record names the right addresses, or none.
 */
#ifndef NETOBS_NAT_TRANSLATIONS_H
#define NETOBS_NAT_TRANSLATIONS_H

#include "flows/flow_extra.h"
#include "translation_table.h"
#include "who/owners.h"
#include "base/log.h"
#include "bpf/connect.h"
#include "engine/program_set.h"
#include "engine/tables.h"
#include "bpf/nat.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- Reports of flow programs ------------------------------------------------------------ */

/* Reports of translations from the flow programs, which struct translations interprets. */

/* All zeroes: off. */
struct nat {
	const struct log *log;
	uint32_t n_cpus;
	uint32_t seen_buckets;		     /* per CPU and generation */
	struct nat_notes *seen;		     /* mapped */
	const struct nat_counters *counters; /* mapped */
	struct ring_buffer *ring;
	int ring_fd;
	uint64_t *consumed; /* mapped: the kernel may write over what is before it */
	const uint64_t *produced; /* mapped: where the next report will be */
	uint64_t read, kept;	  /* positions; see nat_keep() */
	uint64_t flips[2]; /* those of the last two, the latest one last */
};

/**
 * @param on_event  for nat_read(), of a struct nat_event
 * @return 0, or -errno, which is logged
 */
int nat_open(struct nat *nat, const struct program_set *maps, uint32_t n_cpus,
	     ring_buffer_sample_fn on_event, void *ctx, const struct log *log);

void nat_close(struct nat *nat);

/* @return a descriptor to poll with EPOLLET, readable only when many reports wait; -1: none */
int nat_fd(const struct nat *nat);

/* Deliver all waiting reports. */
void nat_read(struct nat *nat);

/*
 * Have all translations reported again in a generation that no program writes to, and that they write
 * next.
 */
void nat_forget(struct nat *nat, uint32_t generation);

/*
 * The other generation has been drained: reports that came before the latest nat_forget() but one are not
 * needed any more. Later ones stay in the ring, read or not, for a process that takes over the tables: it
 * reads them again with the entries that this one leaves, those of a drain that it did not end included.
 * Of too many, the last ones are kept.
 */
void nat_keep(struct nat *nat);

/* @return the sums of the counters over all CPUs */
struct nat_counters nat_count(const struct nat *nat);

/* ---- Reports of sockets that connect ----------------------------------------------------- */

/*
 * The programs that see the address a process connects to, and the address that other programs
 * replace it by. struct socket_translations interprets their reports.
 */

enum { CONNECT_POINTS_MAX = 14 };

/* All zeroes: off. Must not be moved while it is open. */
struct connects {
	struct program_set set;
	struct attach_point points[CONNECT_POINTS_MAX];
	bool by_files; /* iterate over the files of processes, not over a map of sockets */
	bool is_traced; /* COMPAT(<6.17): the programs trace kernel functions */
	int cgroup_fd;	/* of the root group; -errno: it cannot be opened */
	const struct connect_counters *counters; /* mapped */
	struct ring_buffer *ring;
	int ring_fd;
	uint64_t n_listed; /* counters->udp at the last listing */
	bool is_new; /* it had risen then: some may not have connected yet, so list again */
	int64_t rests_until_ns; /* do not list before this time */
};

/**
 * Load the programs and attach them. Programs of others run as before.
 *
 * @param on_event  for connects_read(), of a struct connect_event
 * @return 0; -errno: the kernel lacks something, nothing is logged, and nothing stays loaded
 */
int connects_open(struct connects *connects, ring_buffer_sample_fn on_event,
		  void *ctx);

void connects_close(struct connects *connects);

/* @return a descriptor to poll with EPOLLET, readable only when many reports wait; -1: none */
int connects_fd(const struct connects *connects);

/* Deliver all waiting reports. */
void connects_read(const struct connects *connects);

/*
 * Have the UDP sockets that connected since the last call reported, and deliver all reports. The kernel
 * visits each socket for that; where this takes long, it is done for at most a tenth of the time.
 */
void connects_list(struct connects *connects);

/* @return reports that were lost: too many were waiting */
uint64_t connects_lost(const struct connects *connects);

/* @return UDP calls whose address is unknown: not traced, or of too many threads */
uint64_t connects_missed(const struct connects *connects);

/*
 * Slow, as it asks the kernel: call it only to show counters.
 *
 * @return TCP calls that the kernel did not trace: on a preemptible kernel, a thread preempted the same
 *         program on its CPU. Such a socket has no translation, and none of another socket
 */
uint64_t connects_skipped(const struct connects *connects);

/*
 * @return UDP calls that the kernel did not trace: it may report the address of an earlier call of the
 *         thread that it refused
 */
uint64_t connects_skipped_udp(const struct connects *connects);

struct hash_secret;
struct host;

/* ---- Translations of sockets ---------------------------------------------------------- */

/*
 * Translation when a socket connects, by other BPF programs, such as those of a load balancer.
 * Conntrack has no entry for it, but the programs of struct connects report it with the socket: the
 * table has a translation from the address that the process asked for to the address in its packets.
 *
 * Such packets have the same tuple at all interfaces: the one after the original direction's
 * translation, or the one before the reply's. So the namespace and the time tell which socket an entry
 * belongs to. The entry lasts until the socket is destroyed. If a socket sends from any address, packets
 * in its namespace complete the local address, unless another socket may have the port.
 */

struct socket_translations {
	struct connects connects;
	struct translation_table *table;
	const struct host *host; /* or NULL */
	uint64_t n_noted;
	int64_t latest_ns; /* time of the latest report */
	uint64_t n_lost;   /* reports, as far as that is known */
	uint64_t n_missed; /* calls of UDP whose address was not seen */
	uint64_t n_skipped; /* calls of UDP that were not traced, at the last look */
	uint64_t n_twice; /* their sum at the last two looks: a skipped call changes it twice */
	struct spaces spaces; /* of sockets whose namespaces are not followed, behind pairs */
	bool wants_search; /* one of these spaces is to be found */
};

/* @return 0; -errno: the kernel lacks a feature, and no translations are reported */
int socket_translations_open(struct socket_translations *sockets,
			     struct translation_table *table,
			     const struct host *host);

void socket_translations_close(struct socket_translations *sockets);

/* Read the programs' reports, and search namespaces for up to a millisecond. */
void socket_translations_read(struct socket_translations *sockets);

/* Read the reports that programs have sent by themselves: all of TCP, but not all of UDP. */
void socket_translations_take(struct socket_translations *sockets);

/* Entries are about to be read: addresses of namespaces may have changed since the last time. */
void socket_translations_begin_round(struct socket_translations *sockets);

/* Note a report of the programs. Tests call it without programs. */
void socket_translations_note(struct socket_translations *sockets,
			      const struct connect_event *event);

/* @n_lost: reports lost so far. If there are new ones, forget all sockets that were reported. */
void socket_translations_note_lost(struct socket_translations *sockets,
				   uint64_t n_lost);

/* @n_missed: UDP calls missed so far. If there are new ones, forget all sockets of UDP. */
void socket_translations_note_missed(struct socket_translations *sockets,
				     uint64_t n_missed);

/*
 * @n_skipped: UDP calls not traced so far. If there are new ones, forget all sockets of UDP, now and the next time:
 * a report of such a call may come after this.
 */
void socket_translations_note_skipped(struct socket_translations *sockets,
				      uint64_t n_skipped);

/* Find out which pair of interfaces leads to a namespace that is not followed. @pid: of a process there */
void socket_translations_look_for(struct socket_translations *sockets,
				  uint32_t inode, uint32_t pid);

/*
 * For a socket that sends datagrams from any address: add its translation for the address that
 * such packets have. @dir: as search_socket(). @return false: several sockets are possible
 */
bool socket_translations_complete(struct socket_translations *sockets,
				  const struct socket_search *search,
				  uint32_t dir);

/* ---- Translations of flows ------------------------------------------------------------ */

struct translations_options {
	const struct host *host; /* knows the stacked interfaces; NULL: unknown */
	bool knows_zones;	 /* the kernel has conntrack zones */
	bool joins_faces; /* a flow has one record before and after translation */
	bool no_connect; /* treat the kernel features for sockets as absent */
	int tunnel_addrs_fd;		  /* see tunnel_addrs_init() */
	const struct hash_secret *secret; /* of the programs; stays the caller's */
};

struct translations {
	struct nat nat;
	const struct host *host; /* or NULL */
	struct translation_table table;
	struct socket_translations sockets;
	bool knows_zones, joins_faces;
	struct tunnel_addrs_cache tunnels;
	const struct hash_secret *secret;
	uint64_t ambiguous; /* flows with several possible translations that differ */
	struct nat_event *later; /* reports that came during a drain */
	uint32_t n_later, later_capacity;
	uint64_t late;		 /* reports for which `later` had no room */
	struct flow_extra extra; /* for merge_options.extras */
};

/** @return 0; -ENOMEM; others as nat_open(), which are logged */
int translations_open(struct translations *translations,
		      const struct program_set *maps, uint32_t n_cpus,
		      const struct translations_options *options,
		      const struct log *log);

/** Prepare without programs. @return 0; -ENOMEM */
int translations_init(struct translations *translations,
		      const struct translations_options *options);

void translations_close(struct translations *translations);

/* Read what programs have reported. */
void translations_read(struct translations *translations);

/* No program writes to the other generation any more: read its reports, before its entries. */
void translations_settle(struct translations *translations);

/* The generation's entries were read: apply the reports that came meanwhile. */
void translations_release(struct translations *translations);

/** @return whether reports wait for translations_release() */
bool translations_wait(const struct translations *translations);

/* A program reports something. */
void translations_note(struct translations *translations,
		       const struct nat_event *event);

/* ---- Conversations -------------------------------------------------------------------- */

/*
 * Finds the conversation of a connection that a socket or a rule about connections names. Pending
 * reports of programs are read first. If several conversations are possible, or a report may still be
 * unread, there is none.
 */

/*
 * Find the conversation of a connection at an interface. @entry: one of its tuples, interface, time
 *
 * @param ret_id  as flows have it; 0: it is not known
 * @return 0; -EAGAIN: reports about it wait for the end of a drain
 */
int conversation_at(struct translations *translations,
		    const struct flow_entry *entry, uint64_t *ret_id);

/*
 * Find the conversation of a socket's connection. @entry has the tuple as the socket sends it,
 * and the time; its interface is not used.
 *
 * @inode  inode of the socket's namespace, which need not be followed
 * @pid    of a process there; 0: none is known
 * @return 0; -ENOENT: it is not known; -EAGAIN: as conversation_at()
 */
int conversation_of_socket(struct translations *translations,
			   const struct flow_entry *entry, uint32_t inode,
			   uint32_t pid, uint64_t *ret_id);

#endif
