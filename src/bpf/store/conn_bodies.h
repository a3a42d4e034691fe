/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bodies of connections and their alert states, in parts that user space adds. */
#ifndef NETOBS_BPF_STORE_CONN_BODIES_H
#define NETOBS_BPF_STORE_CONN_BODIES_H

#include "bpf/maps.h"

const volatile __u32 config_part_bits = 0; /* a part has 1 << so many bodies */

/* Find element @body, from 1 on. NULL: the part does not exist; number 0 is in no part. */
static __always_inline void *part_find(void *parts, __u32 body)
{
	__u32 number = body - 1, part = number >> config_part_bits;
	__u32 at = number & ((1U << config_part_bits) - 1);
	void *map = bpf_map_lookup_elem(parts, &part);

	return map ? bpf_map_lookup_elem(map, &at) : NULL;
}

static __always_inline struct conn_body *body_of(const struct conn_rates *rates)
{
	return part_find(&conn_bodies, READ_ONCE(rates->body));
}

/* Body of the connection at @index. NULL: it has no body. */
static __always_inline struct conn_body *body_at(__u32 index)
{
	const struct conn_rates *rates = bpf_map_lookup_elem(&conn_rates, &index);

	return rates ? body_of(rates) : NULL;
}

/* Alert state of the connection at @index. NULL: the connection has no body. */
static __always_inline struct alert_state *state_at(__u32 index)
{
	const struct conn_rates *rates = bpf_map_lookup_elem(&conn_rates, &index);

	return rates ? part_find(&alert_states, READ_ONCE(rates->body)) : NULL;
}

/* Give a slot a body. False: none is free, as user space has not added enough yet. */
static __always_inline bool body_take(struct conn_rates *rates)
{
	__u32 body;
	__u64 notice = 0;

	if (rates->body)
		return true;
	if (bpf_map_pop_elem(&conn_free, &body))
		return false;
	WRITE_ONCE(rates->body, body & ~CONN_BODY_NOTICE);
	if (body & CONN_BODY_NOTICE)
		bpf_ringbuf_output(&notices, &notice, sizeof(notice),
				   BPF_RB_FORCE_WAKEUP);
	return true;
}

#endif
