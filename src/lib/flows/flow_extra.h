/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Room beside each flow of the process, for features that keep data per flow. A
 * feature asks for it at the start (merge_options.extras). Without one, a flow takes
 * no more memory, and merging costs a branch.
 *
 * What programs measure beside a flow's counts is in maps of the feature's own program
 * set, with the flow's tuple as key: the kernel's store moves entries between tables,
 * and may have none for a flow. `note` looks it up when an entry of the flow arrives.
 */
#ifndef NETOBS_FLOWS_FLOW_EXTRA_H
#define NETOBS_FLOWS_FLOW_EXTRA_H

#include "flow_table.h"

struct netobs_flow;

enum { FLOW_EXTRA_BYTES_MAX = 512 }; /* of all features */

/*
 * The data of a feature: 8-byte aligned, and zeroes in a new flow; their size may be 0, and then
 * note and join may be NULL. The callbacks change what they are given and nothing else, since an
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

#endif
