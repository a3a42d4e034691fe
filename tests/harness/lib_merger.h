/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Merging over made-up interfaces, with a witness of what is reported. */
#ifndef HARNESS_LIB_MERGER_H
#define HARNESS_LIB_MERGER_H

#include "lib_test.h"
#include "lib_witness.h"
#include "lib_world.h"
#include "flows/merge.h"

/* Flags of entries: a packet that comes in, leaves, or leaves after it was seen here. */
enum { IN = 0, OUT = KEY_EGRESS, ON = KEY_EGRESS | KEY_AGAIN };

struct merger {
	struct host host;
	struct clock clock;
	struct merge merge;
	struct witness witness;
	struct volume merged;  /* all that was handed over */
	struct volume entered; /* of that, first sights */
};

/* A drain and a report per second, idle after 15 seconds. */
struct merge_options merger_every_second(void);

/* Like merger_every_second(), but a flow is reported when it has ended, or after a minute. */
struct merge_options merger_every_minute(void);

/* @links: see world_build(). */
void merger_open_in(struct merger *merger, struct merge_options options,
		    uint32_t n_netns, const struct world_link *links);

/* One namespace with two interfaces beside each other. */
void merger_open(struct merger *merger, struct merge_options options);

void merger_close(struct merger *merger);

/* Four interfaces, of which 3 is a bridge over 1 and 2. */
extern const struct world_link merger_bridged[];

int merger_set_up(void **state);
int merger_set_up_bridged(void **state);
int merger_tear_down(void **state);

/* Cases of struct merger *m, which reports every second: as merger_open() has it, or over merger_bridged. */
#define MERGER_TEST(name) \
	TEST_OF(name, struct merger *m, merger_set_up, merger_tear_down)
#define BRIDGED_TEST(name) \
	TEST_OF(name, struct merger *m, merger_set_up_bridged, merger_tear_down)

/* Times are in milliseconds. */
void merger_begin(struct merger *merger, enum merge_mode mode, int64_t flip_ms);

/* Of world_key() in the first namespace. */
struct flow_entry merger_entry(uint32_t ifindex, uint8_t flags, uint64_t packets,
			       int64_t first_ms, int64_t last_ms);

/* merge_keep(), with what merge_look() says. */
void merger_keep_entry(struct merger *merger, const struct flow_entry *entry);

/* The same of that entry; @flags: enum flow_key_flag. */
void merger_keep(struct merger *merger, uint32_t ifindex, uint8_t flags,
		 uint64_t packets, int64_t first_ms, int64_t last_ms);

/* A drain that reads that entry alone, to its end. */
void merger_drain(struct merger *merger, enum merge_mode mode, int64_t flip_ms,
		  uint32_t ifindex, uint8_t flags, uint64_t packets,
		  int64_t first_ms, int64_t last_ms);

/* As after reading a large table: first all keys, then all entries. */
void merger_deliver(struct merger *merger, const struct flow_entry *entries,
		    uint32_t n);

/* What was handed over, and is no part of any total. */
uint64_t merger_repeated(const struct merger *merger);

/* Sweep to the end, and check that all packets and bytes are accounted for. */
void merger_end(struct merger *merger);

const struct netobs_flow *merger_last_record(const struct merger *merger);

/* There are @n_records, and the last one is of @packets for @reason. */
void merger_assert_record(const struct merger *merger, uint32_t n_records,
			  uint64_t packets, enum netobs_end_reason reason);

#endif
