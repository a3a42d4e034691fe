/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Makes flow records of the kernel's entries, one per flow, observation point and
 * CPU: merges them, counts once, and decides when a flow is reported.
 *
 * Flows that may still be seen elsewhere stay in the table after they were
 * reported: a packet that was on its way between two points when the
 * generation changed must not be counted again when it reaches the second.
 */
#ifndef NETOBS_FLOWS_MERGE_H
#define NETOBS_FLOWS_MERGE_H

#include "base/clock.h"
#include "engine/tables.h"
#include "flow_extra.h"
#include "flow_table.h"
#include "sighting.h"

#include <netobs/flow.h>
#include <stdbool.h>
#include <stdint.h>

/* The public record of a flow. */

struct host;

/* Room for a record, reused for each one; freed by record_done(). */
struct record {
	struct netobs_flow flow;
	struct netobs_point *points;
	uint32_t capacity;
	uint32_t sampling; /* interval for the next record; 0: it names none */
	enum netobs_sampling sampling_mode;
};

/* Fill record->flow. -ENOMEM: more points than there is memory for. */
int record_fill(struct record *record, const struct flow *flow,
		const struct volume *delta, enum netobs_end_reason reason,
		const struct host *host, const struct clock *clock);

void record_done(struct record *record);

/*
 * The keys of a long list that may occur more than once, in two bits per slot:
 * never wrong about a key that does, sometimes about one that does not.
 */

struct repeats {
	uint64_t *words; /* NULL without memory */
	uint64_t mask;	 /* slots - 1 */
};

/* Room for about @n keys. Without memory, every key may repeat. */
void repeats_init(struct repeats *repeats, uint64_t n);
void repeats_done(struct repeats *repeats);

/* Fetch the slots of a key into the cache; for several keys, before the calls below. */
void repeats_prefetch(const struct repeats *repeats, uint64_t hash);

void repeats_note(struct repeats *repeats, uint64_t hash);
bool repeats_may(const struct repeats *repeats, uint64_t hash);

struct merge_options {
	bool per_interface;
	bool single_point; /* replay: nothing is seen twice */
	bool hide_link;	   /* replay: link headers of zeros may be made up */
	int64_t interval_ns;
	int64_t active_timeout_ns; /* 0: every interval */
	int64_t idle_timeout_ns;
	uint32_t max_flows;
	const struct rates *rates; /* of the numbers in keys; NULL: all are 0 */
	uint64_t min_bytes; /* per interval; records with fewer bytes are not delivered */
	uint32_t max_kept; /* limit of flows; packets of more are lost; 0: no limit */
	int tunnel_addrs_fd; /* see tunnel_addrs_init() */
	struct flow_extras extras;
	void (*on_record)(const struct netobs_record *record, void *user);
	void *user;
};

enum merge_mode {
	MERGE_INTERVAL,
	MERGE_EARLY, /* the kernel's table fills up */
	MERGE_ALL,   /* report everything */
	MERGE_FINAL, /* report everything, keep nothing */
};

/* Limits that decide about each flow of a drain, from its mode and the options. */
struct merge_times {
	int64_t idle_ns; /* a flow seen last until then is reported: it is idle */
	int64_t active_ns; /* a flow that began until then is reported: its active timeout is over */
	int64_t young_ns; /* a new flow that began later waits for the next drain */
	int64_t crossing_ns; /* a flow seen last since then may appear at another point */
	int64_t several_ns; /* as crossing_ns, for flows with several points */
	enum netobs_end_reason active_reason;
};

struct merge {
	const struct host *host;
	const struct clock *clock;
	struct tunnel_addrs_cache tunnels;
	struct merge_options options;
	struct flow_table table;
	uint64_t n_expected; /* keys that will be announced; none has been yet */
	struct repeats repeats;
	struct record record;

	enum merge_mode mode;
	int64_t flip_ns; /* the end of the generation that is merged */
	struct merge_times times;
	bool is_crowded; /* more flows than max_flows */
	uint32_t cursor;
	struct flow **strays; /* to be resolved by the sweep */
	uint32_t n_strays;
	uint32_t strays_capacity;

	/* Since the beginning: first sights + inferred = exported + small + pending + lost. */
	struct volume exported;
	struct volume small;   /* in records of less than min_bytes */
	struct volume lost;    /* no memory */
	struct volume pending; /* as of the last complete sweep */
	struct volume inferred; /* counted without a first sight, as of the last complete sweep */
	uint64_t records;

	/* Being summed up by the sweep. */
	struct volume unreported;
	struct volume inferred_now; /* of flows in the table */
	struct volume inferred_gone; /* of flows that left it, since the beginning */
};

void merge_init(struct merge *merge, const struct merge_options *options,
		const struct host *host, const struct clock *clock);
void merge_done(struct merge *merge);

/* Begin with the generation that ended at @flip_ns. */
void merge_begin(struct merge *merge, enum merge_mode mode, int64_t flip_ns);

enum { MERGE_BATCH = 16 };

/*
 * Compute the hashes of up to MERGE_BATCH entries, for the calls below, and fetch their
 * flows into the cache together.
 */
void merge_look(const struct merge *merge,
		const struct flow_entry *const *entries, int n,
		struct sighting *ret_sightings);

/* Add an entry to its flow in the table. */
void merge_keep(struct merge *merge, const struct flow_entry *entry,
		const struct sighting *sighting);

/*
 * A long list is announced first, then delivered: flows that need not be kept are reported
 * at once.
 */
void merge_expect(struct merge *merge, uint64_t n_keys);
void merge_announce(struct merge *merge,
		    const struct flow_entry *const *entries, int n);
void merge_deliver(struct merge *merge, const struct flow_entry *entry,
		   const struct sighting *sighting);

/** Report a slice of the flows that are due. @return false: all are done */
bool merge_sweep(struct merge *merge);

#endif
