// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "flow_extra.h"

#include <assert.h>

static uint32_t padded_size(const struct flow_extra *extra)
{
	return (extra->size + sizeof(uint64_t) - 1) & -sizeof(uint64_t);
}

uint32_t flow_extras_bytes(const struct flow_extras *extras)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < extras->n; i++)
		sum += padded_size(&extras->list[i]);
	assert(sum <= FLOW_EXTRA_BYTES_MAX);
	return sum;
}

bool flow_extras_find_key(const struct flow_extras *extras,
			  const struct flow_entry *entry, bool is_further,
			  struct flow_key *key)
{
	for (uint32_t i = 0; i < extras->n; i++) {
		const struct flow_extra *extra = &extras->list[i];

		if (extra->find_key &&
		    !extra->find_key(entry, is_further, key, extra->ctx))
			return false;
	}
	return true;
}

/* Data are in the order of the list, one behind the other. */
void flow_extras_note(const struct flow_extras *extras, struct flow *flow,
		      const struct flow_entry *entry)
{
	char *data = (char *)(flow + 1);

	for (uint32_t i = 0; i < extras->n; i++) {
		const struct flow_extra *extra = &extras->list[i];

		if (extra->note)
			extra->note(data, entry, extra->ctx);
		data += padded_size(extra);
	}
}

void flow_extras_join(const struct flow_extras *extras, struct flow *flow,
		      const struct flow *other)
{
	const char *from = (const char *)(other + 1);
	char *data = (char *)(flow + 1);

	for (uint32_t i = 0; i < extras->n; i++) {
		const struct flow_extra *extra = &extras->list[i];

		if (extra->join)
			extra->join(data, from, extra->ctx);
		data += padded_size(extra);
		from += padded_size(extra);
	}
}

void flow_extras_fill(const struct flow_extras *extras, struct flow *flow,
		      struct netobs_flow *record)
{
	char *data = (char *)(flow + 1);

	for (uint32_t i = 0; i < extras->n; i++) {
		const struct flow_extra *extra = &extras->list[i];

		extra->fill(data, record, extra->ctx);
		data += padded_size(extra);
	}
}

/* Call @member of each feature that has it. */
#define FOR_EACH_CALL(extras, member, ...)         \
	for (uint32_t i = 0; i < (extras)->n; i++) \
		if ((extras)->list[i].member)      \
	(extras)->list[i].member(__VA_ARGS__, (extras)->list[i].ctx)

void flow_extras_before_flip(const struct flow_extras *extras,
			     uint32_t generation, int64_t stamp_ns)
{
	FOR_EACH_CALL(extras, before_flip, generation, stamp_ns);
}

void flow_extras_after_flip(const struct flow_extras *extras, int64_t now_ns)
{
	FOR_EACH_CALL(extras, after_flip, now_ns);
}

bool flow_extras_step(const struct flow_extras *extras, uint32_t *next,
		      uint32_t *ret_wait_ms)
{
	const struct flow_extra *extra;

	if (*next == extras->n)
		return false;
	extra = &extras->list[*next];
	if (!extra->step || !extra->step(ret_wait_ms, extra->ctx))
		++*next;
	return true;
}

void flow_extras_settle(const struct flow_extras *extras)
{
	for (uint32_t i = 0; i < extras->n; i++)
		if (extras->list[i].settle)
			extras->list[i].settle(extras->list[i].ctx);
}

void flow_extras_end(const struct flow_extras *extras, int64_t done_ns)
{
	FOR_EACH_CALL(extras, end, done_ns);
}

void flow_extras_add_stats(const struct flow_extras *extras,
			   struct netobs_stats *stats)
{
	FOR_EACH_CALL(extras, add_stats, stats);
}
