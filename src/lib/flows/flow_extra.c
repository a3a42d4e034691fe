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
