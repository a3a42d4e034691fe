/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kernel side of a context: its maps, and programs that share them. */
#ifndef NETOBS_ENGINE_STORE_H
#define NETOBS_ENGINE_STORE_H

#include "base/log.h"
#include "bpf/nat.h"
#include "bpf/store/hash.h"
#include "bpf/types.h"
#include "connections.h"
#include "pinned.h"
#include "program_set.h"
#include "tables.h"

#include <netobs/netobs.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- Overflow tables -------------------------------------------------------------------- */

/*
 * The overflow tables of both generations, where entries go while a log is full. Empty
 * ones consist of 16 bytes for each page that they have room for; the kernel takes
 * memory for pages as flows come, see struct overflow_page.
 */

/* Receives an entry that was removed from the table. */
typedef void overflow_entry_fn(void *ctx, const struct flow_entry *entry);

struct overflow {
	uint32_t room; /* pages of a table */
	uint32_t part; /* pages in each of a CPU's OVERFLOW_PARTS parts */
	int fds[GENERATIONS];
	struct overflow_batch *batch; /* while a table is read */
	uint32_t position;	      /* the kernel's cursor in the table */
};

/** @return the pages of a table that overflow_init() makes with these limits, a power of two */
uint32_t overflow_choose_room(uint64_t max_flows, uint64_t max_bytes);

/**
 * @param outer_fd   the programs' map of overflow tables; stays the caller's
 * @param max_flows  in an interval
 * @param max_bytes  of both tables when full; 0: no limit
 * @return 0, or -errno
 */
int overflow_init(struct overflow *overflow, int outer_fd, uint64_t max_flows,
		  uint64_t max_bytes);

/** Use the tables of @pinned, which stay pinned. @return 0, or -errno */
int overflow_adopt(struct overflow *overflow, const struct pinned *pinned);

/** Pin the tables. @return 0, or -errno */
int overflow_pin(const struct overflow *overflow, const struct pinned *pinned);

void overflow_done(struct overflow *overflow);

/**
 * Take some hundred entries out of the table of a generation at rest.
 *
 * @return 1: there may be more; 0: there are no more; or -errno: those that are left can
 *         be read later
 */
int overflow_take(struct overflow *overflow, uint32_t generation,
		  overflow_entry_fn *on_entry, void *ctx);

/** @return memory of empty tables in bytes, estimated */
uint64_t overflow_bytes(const struct overflow *overflow);

/* ---- Store ------------------------------------------------------------------------------ */

/* The members of a store, and functions that read them at any time. */

enum { STORE_CONNECTIONS_MAX = 1 << 24 };

struct ring_buffer;

struct store_options {
	/* The context's, or those of a test; they stay the caller's. Callbacks are not called. */
	const struct netobs_opts *opts;
	enum clock_kind clock;
	uint32_t lanes;	    /* per CPU, see types.h; 0: as this kernel needs */
	uint32_t log_slots; /* per CPU, a power of two; 0: as fits this machine */
	const struct filter *filter; /* NULL: all packets; stays the caller's */
	struct rate rate;	     /* sampling rate if there is no filter */
	bool has_alerts; /* there may be rules about connections; requires rtt */
	struct pinned *pinned; /* the set that outlives the process; NULL: none does */
};

struct store {
	const struct log *log;
	struct program_set maps; /* without programs */
	struct store_options options;
	uint32_t lanes;
	uint32_t n_cpus;     /* possible ones, times their lanes */
	uint32_t l1_buckets; /* per CPU and generation */
	uint32_t log_slots;  /* per CPU, a power of two */
	uint32_t conn_buckets; /* a power of two; 0: connections are not measured */
	uint32_t part_bits;	  /* of conn_parts_bits() */
	uint32_t leaving_buckets; /* 0: times of packets are not those of this host */
	struct program_set leaving; /* see store_follow_leaving(); without references: unavailable */
	bool is_growing; /* call store_grow() soon: the table of connections has steps left */
	bool cannot_grow;     /* it cannot grow, which was logged */
	uint64_t entry_bytes; /* limit for entries until they are merged; 0: none */
	uint64_t overflow_bytes; /* limit for entries of overflow tables; 0: none */
	uint64_t process_bytes;	 /* limit for flows; 0: none */
	struct cpu_state *cpus;	 /* mapped, n_cpus of them */
	struct count *unclaimed; /* mapped: packets that found no free lane */
	struct overflow overflow;
	struct connections connections; /* mapped; zeroes without RTT */
	struct nat_layout nat; /* structs of this kernel; zeroes without NETOBS_NAT */
	struct ring_buffer *notices;
	struct origins origins;
	struct rates rates;	   /* of the loaded programs */
	struct hash_secret secret; /* the hash secret of the programs */
	uint32_t kept; /* options of the earlier process that stay in use: enum netobs_kept */
	bool is_adopted; /* the maps are those of an earlier process, and may contain packets */
	/* Counters of the maps when this process took them over. */
	struct counters counted_before[GENERATIONS];
	struct count unclaimed_before;
	struct count unreported_before; /* drained by earlier processes, but in no record */
};

/* @return memory of all BPF maps in bytes, estimated */
uint64_t store_bytes(const struct store *store);

/* @return packets that found no free lane since the store was opened */
struct count store_unclaimed(const struct store *store);

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log);

void store_close(struct store *store);

/*
 * Load the programs for interfaces of one kind in one namespace. @filter: NULL: no filter, and
 * packets are sampled at @rate, which must have a number.
 */
int store_load_programs(struct store *store, const struct filter *filter,
			const struct rate *rate, uint16_t netns,
			enum link_kind link, struct programs *ret_programs);

/*
 * Load programs as store_load_programs(), but log to @log. While the owner's thread uses the store,
 * another one may do this for a namespace and kind of links that have programs already.
 */
int store_load_programs_logging(struct store *store, const struct filter *filter,
				const struct rate *rate, uint16_t netns,
				enum link_kind link, const struct log *log,
				struct programs *ret_programs);

/*
 * Map the l1_buckets buckets of one CPU in one generation. Unmap them soon: mapped pages count as
 * memory of this process.
 */
struct flow_bucket *store_map_l1(const struct store *store, uint32_t generation,
				 uint32_t cpu);
void store_unmap_l1(const struct store *store, struct flow_bucket *buckets);

/* Map one CPU's log, log_slots slots; NULL: see errno. Unmap it soon, too. */
const struct log_slot *store_map_log(const struct store *store, uint32_t cpu);
void store_unmap_log(const struct store *store, const struct log_slot *slots);

/* Turn counting off or on, for all programs at once. It is on at first. */
void store_pause(struct store *store, bool pause);

/* Add bodies of connections if few are free: see connections_grow(). A failure is logged. */
void store_grow(struct store *store);

/* @return a descriptor for tunnel_addrs_init(), which the store owns */
int store_tunnel_addrs_fd(const struct store *store);

/* @return a descriptor that polls readable when a log fills up, until store_clear_notices() */
int store_notices_fd(const struct store *store);
void store_clear_notices(const struct store *store);

/* Sum up the counters of a generation over all CPUs, since the store was opened. */
void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters);

/* Chooses the sizes of a store's tables by its options, the CPUs, and the available memory. */

/**
 * Count the CPUs, and choose the sizes of the maps to be loaded.
 *
 * @return 0; < 0: the CPUs cannot be counted, which was logged
 */
int store_choose_sizes(struct store *store);

/**
 * Limit the memory of entries and flows, once the maps are loaded.
 *
 * @return 0; -EINVAL: the memory allowed is too little; -ENOMEM: the memory control group leaves too little; both were
 *         logged
 */
int store_limit_memory(struct store *store);

/* The sampling rates of a store's programs: their numbers, and the samplers of each CPU. */

/**
 * Give the rates of programs that will be loaded numbers. Those of the options have them.
 *
 * @param filter   NULL: packets are sampled at @rate
 * @param n_flows  as for rates_take()
 * @return 0; -EBUSY: too few are free
 */
int store_take_rates(struct store *store, const struct filter *filter,
		     const struct rate *rate, const uint32_t n_flows[RATE_IDS]);

/* Free all rates but those of @filter or @rate: see rates_keep(). */
void store_keep_rates(struct store *store, const struct filter *filter,
		      const struct rate *rate);

/** Number in @rates the rates that the options of @store name. @return as rates_take() */
int store_number_rates(const struct store *store, struct rates *rates,
		       uint32_t *ret_new);

/*
 * Packets leave queues of this host behind the flow programs, which have set the times of
 * segments by then: a program of its own moves these times on. See bpf/rtt/leave.h.
 */

/* Load and attach that program, if connections are measured. A failure is logged. */
void store_open_leaving(struct store *store);

/* @netns is the namespace with that inode from now on; 0: none. @former: the one that it was, or 0 */
void store_follow_leaving(const struct store *store, uint32_t netns,
			  uint32_t former, uint32_t inode);

/* Attach that program for a moment, without maps of a store. @return 0, or -errno */
int store_try_leaving(const struct log *log);

/*
 * A store whose maps outlive the process: takes over the maps of an earlier process, and notes for
 * the next one what was drained. See pinned.h.
 */

/**
 * Load the maps of an earlier process, and new maps for connections with inner maps like @first.
 *
 * @return false: there are none, or they cannot be read and were discarded, which is logged
 */
bool store_adopt(struct store *store, const struct conn_part *first);

/* Set store.kept to the earlier process's options that stay in use, and log a warning. */
void store_note_kept(struct store *store);

/* Pin the maps. A failure is logged, and the context goes on without pinning. */
void store_publish(struct store *store);

/*
 * Note in the pinned state that @counted of a generation was drained, of which @unreported is in no
 * record yet. The change is atomic: if the process is killed, the next one finds all of it, or nothing.
 */
void store_note_drained(const struct store *store, uint32_t generation,
			const struct counters *counted,
			const struct count *unreported);

/* Counters of packets at each interface that did not reach the tables of flows, by outcome. */

/**
 * Receives the counters of a generation on one CPU.
 *
 * @param ifindex  0: interfaces without a slot
 * @param counts   [enum direction][enum outcome_kind, up to OUTCOMES_COUNTED]
 * @return whether the interface exists; if not, its slot becomes free
 */
typedef bool outcomes_fn(void *ctx, uint16_t netns, uint32_t ifindex,
			 const struct count counts[2][OUTCOMES_COUNTED]);

/**
 * Take and clear the counters of a generation at rest. Counters that are in the map have not been
 * taken, also after a restart.
 *
 * @return 0, or -errno: a later call takes the rest
 */
int outcomes_take(const struct store *store, uint32_t generation,
		  outcomes_fn *take, void *ctx);

/* ---- Flow programs ---------------------------------------------------------------------- */

/**
 * Find the offsets of a packet's translation in the structs of this kernel, by the BTF of the
 * kernel or of its module nf_conntrack.
 *
 * @return 0; -ENOENT: the kernel has no conntrack, or the module is not loaded; -EPROTO: its
 *         structs have an unknown layout; others from libbpf
 */
int nat_find_layout(struct nat_layout *ret_layout, const struct log *log);

/**
 * Load the maps of a store whose sizes are chosen, without programs: takes the first reference to them.
 *
 * @param part     inner maps will be like it
 * @param adopted  use the maps of this set; NULL: make new ones
 * @return 0, or -errno, which is logged; -ESTALE: the maps to be adopted differ
 */
int flow_maps_load(struct store *store, const struct conn_part *part,
		   const struct pinned *adopted, const struct log *log);

/**
 * Sum up the counters of filter rules over all CPUs.
 *
 * @param maps  loaded with a filter
 * @return 0, or -errno
 */
int flow_rules_read(const struct program_set *maps, uint32_t n_cpus,
		    struct rule_count ret_totals[RULE_SLOTS]);

/* Count packets for the rule of @judgement that no program has seen; no program runs meanwhile. */
void flow_rules_add(const struct program_set *maps, uint32_t judgement,
		    const struct count *count);

/* A packet for BPF_PROG_TEST_RUN. */
struct test_packet {
	const void *bytes; /* from the link header on */
	uint32_t len;
	uint32_t wire_len; /* length before it was cut to @len */
	int64_t ns;	   /* time stamp, for CLOCK_PACKET */
};

/**
 * Run a program once.
 *
 * @return 0, or -errno
 */
int programs_test_run(int program_fd, const struct test_packet *packet);

/*
 * Which of the two generations the programs write to, and when the other one
 * is at rest.
 *
 * A program counts itself in (entered), reads its CPU's generation, works, and
 * counts itself out (exited). After a flip, user space waits until that store
 * has reached every CPU, notes how many had entered, and waits until as many
 * have exited: none that read the old generation is left. One wait more, and
 * their last stores are visible. Programs run with bottom halves disabled, in
 * well under a microsecond, so this takes a few waits; it blocks no other thread.
 *
 * It takes longer where the host of a virtual machine runs something else on a
 * CPU; then waiting is right. To distinguish that from a count that went wrong,
 * which would end draining silently, a grace period of the kernel is waited for
 * after a second: it takes as long as the slowest program, and proves that all
 * have ended, whatever they counted.
 */

enum { GENERATION_WAIT_MS = 2, GENERATION_DOUBT_MS = 1000 };

struct generation {
	const struct store *store;
	uint32_t current; /* the one being written to */
	enum {
		GENERATION_SETTLED,
		FLIPPED,
		ENTERED_NOTED,
		IN_DOUBT,
		ALL_EXITED
	} phase;
	int64_t doubt_ns; /* ENTERED_NOTED: when the phase becomes IN_DOUBT */
	struct map_grace *grace; /* IN_DOUBT: grace period to wait for; or NULL */
	struct cpu_runs *runs;	 /* per CPU */
};

/*
 * An adopted store keeps its current generation, as after a flip: the other generation may not have
 * been drained. @return 0, or -ENOMEM
 */
int generation_init(struct generation *generation, const struct store *store);
void generation_done(struct generation *generation);

/* Send writers to the other generation. */
void generation_flip(struct generation *generation);

/* Call every GENERATION_WAIT_MS after a flip. @return whether the old generation is at rest */
bool generation_settle(struct generation *generation);

static inline uint32_t generation_old(const struct generation *generation)
{
	return !generation->current;
}

/*
 * The reader of the CPUs' logs: reports their records, slice by slice, in the order of
 * each CPU. Unread slots are occupied: programs that find no others take the overflow
 * table.
 */

/**
 * Receives slots with records, the first of which is complete.
 *
 * @param is_left  an earlier drain had to leave these records
 * @return the number of slots taken, from the first on. A last record of which only the first half
 *         is in @slots is left. 0: the first record was refused, and stays in the log
 */
typedef size_t logs_records_fn(void *ctx, const struct log_slot *slots,
			       size_t n, bool is_left);

enum { LOGS_WAIT_MS = 1 }; /* while a log settles */

struct logs {
	struct store *store;
	logs_records_fn *on_records;
	void *ctx;
	/* Positions in the log of a CPU: it may be read up to readable; noted was its head at noted_ns. */
	struct log_heads {
		uint64_t readable;
		uint64_t noted;
		uint64_t left; /* records before this position may be of an earlier drain */
		uint64_t unread; /* the current drain left some records before this position */
	} * heads;
	/* The CPU of the log and the position of the records that on_records() gets. */
	uint32_t cpu;
	uint64_t at;
	int64_t noted_ns;
	bool is_settling; /* `noted` are the heads as of logs_settle() */
	uint32_t next;	  /* the log to read first */
};

/** @return 0, or -ENOMEM */
int logs_init(struct logs *logs, struct store *store,
	      logs_records_fn *on_records, void *ctx);
void logs_done(struct logs *logs);

/**
 * Read from the logs that are filling up.
 *
 * @param max_slots  limit for all logs together, exceeded by one at most; 8,000 slots take a
 *                   millisecond
 * @return whether to call this again in a millisecond: a log is still filling up
 */
bool logs_read(struct logs *logs, uint32_t max_slots);

/** @return whether a log has so many records that programs gave notice */
bool logs_are_filling(const struct logs *logs);

/*
 * For on_records(), before it returns: free the first @n of its slots, whose records it has copied.
 * If the process is killed later, these records are not in the log any more.
 */
void logs_release(const struct logs *logs, size_t n);

/**
 * Call when a generation is at rest: all its records are in the logs.
 *
 * @param has_writers  other CPUs wrote the records, which become readable LOGS_WAIT_MS later
 */
void logs_settle(struct logs *logs, bool has_writers);

/**
 * Read from the records of a generation at rest.
 *
 * @param max_slots  as for logs_read()
 * @return 1: there may be more; 0: there are no more; -errno: a log cannot be mapped, or (-ENOMEM)
 *         its first record was refused; its records stay in it
 */
int logs_complete(struct logs *logs, uint32_t generation, uint32_t max_slots);

#endif
