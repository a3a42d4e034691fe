/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Features that add to flow records: each has its steps in a drain, and may keep data beside each
 * flow of the process. A feature asks for it at the start (merge_options.extras). Without one, a
 * flow takes no more memory, and merging costs a branch.
 *
 * Values that programs measure beside a flow's counts are in maps of the feature's own program
 * set, with the flow's tuple as key: the kernel's store moves entries between tables,
 * and may have none for a flow. `note` looks them up when an entry of the flow arrives.
 */
#ifndef NETOBS_FLOWS_FLOW_EXTRA_H
#define NETOBS_FLOWS_FLOW_EXTRA_H

#include "engine/connections.h"
#include "flow_table.h"

struct netobs_flow;
struct netobs_stats;

enum { FLOW_EXTRA_BYTES_MAX = 512 }; /* of all features */

/*
 * The data of a feature: 8-byte aligned, and zeroes in a new flow; their size may be 0, and then
 * note and join may be NULL. find_key, note and join change what they are given and nothing else, since an
 * entry may be noted twice: first in a flow that may be reported at once, then, if that fails, in
 * the flow that is kept.
 */
struct flow_extra {
	uint32_t size;
	/*
	 * Find the key of the flow that an entry belongs to, if it has another one where the flow
	 * was seen first; NULL: it never has. @is_further: the entry proves that its packets were
	 * counted at another point. False: they need not count here.
	 */
	bool (*find_key)(const struct flow_entry *entry, bool is_further,
			 struct flow_key *key, void *ctx);
	/* An entry was added to the flow; or NULL. */
	void (*note)(void *data, const struct flow_entry *entry, void *ctx);
	/* Another flow, with data of @other, turned out to be the same one; or NULL. */
	void (*join)(void *data, const void *other, void *ctx);
	/* The flow is reported: set the feature's fields; may begin @data anew. */
	void (*fill)(void *data, struct netobs_flow *record, void *ctx);

	/* The steps of a drain, in this order. Each may be NULL. */

	/* Programs will write to @generation; @stamp_ns: the time, by the clock of entries. */
	void (*before_flip)(uint32_t generation, int64_t stamp_ns, void *ctx);
	void (*after_flip)(int64_t now_ns, void *ctx);
	/*
	 * No program writes to the old generation any more: work for some milliseconds, before its
	 * entries are read. @return whether to call it again, in @ret_wait_ms
	 */
	bool (*step)(uint32_t *ret_wait_ms, void *ctx);
	/* The entries of @generation are read from now on. */
	void (*settle)(uint32_t generation, void *ctx);
	/* Records are filled. No later one has packets from before @done_ns; INT64_MAX: none comes. */
	void (*end)(int64_t done_ns, void *ctx);

	/* Add the feature's counts; or NULL. */
	void (*add_stats)(struct netobs_stats *stats, const void *ctx);
	void *ctx;
};

/* All that were asked for; the owner keeps the list. */
struct flow_extras {
	const struct flow_extra *list;
	uint32_t n;
};

/* A flow that is in no table, with all the room that there may be. */
struct flow_with_extras {
	struct flow flow;
	uint64_t room[FLOW_EXTRA_BYTES_MAX / sizeof(uint64_t)];
};

/** @return bytes behind each flow, FLOW_EXTRA_BYTES_MAX at most */
uint32_t flow_extras_bytes(const struct flow_extras *extras);

bool flow_extras_find_key(const struct flow_extras *extras,
			  const struct flow_entry *entry, bool is_further,
			  struct flow_key *key);
void flow_extras_note(const struct flow_extras *extras, struct flow *flow,
		      const struct flow_entry *entry);
void flow_extras_join(const struct flow_extras *extras, struct flow *flow,
		      const struct flow *other);
void flow_extras_fill(const struct flow_extras *extras, struct flow *flow,
		      struct netobs_flow *record);

/* Call @step of each feature that has it, and pass it what follows. */
#define flow_extras_call(extras, step, ...)           \
	for (uint32_t i_ = 0; i_ < (extras)->n; i_++) \
		if ((extras)->list[i_].step)          \
	(extras)->list[i_].step(__VA_ARGS__, (extras)->list[i_].ctx)

/* @next: the feature whose step is due, 0 at first. @return whether there is more to do */
bool flow_extras_step(const struct flow_extras *extras, uint32_t *next,
		      uint32_t *ret_wait_ms);

/*
 * The health of TCP connections in flow records, from the table of connections: each record has
 * the counts since the flow's previous one, and the current round-trip and response times. A
 * flow's connection is the one at the first of its points.
 */

/* Counters of a connection's direction that records have reported so far. */
struct health_reported {
	uint64_t retransmitted_bytes;
	uint32_t rtt_samples;
	uint32_t responses;
	uint32_t retransmits;
	uint32_t out_of_order;
	uint32_t late_unknown;
	uint32_t duplicate_acks;
	uint32_t zero_windows;
};

/* A place in the table of connections; born_ns tells the connections of a place apart. */
struct health_place {
	uint64_t born_ns;
	struct health_reported reported[2];
};

struct health {
	const struct connections *table;
	struct health_place *places;
	struct flow_extra extra; /* for merge_options.extras */
};

/** @return 0; -ENOMEM */
int health_init(struct health *health, const struct connections *table);
void health_done(struct health *health);

#endif
