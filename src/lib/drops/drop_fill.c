// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_drain.h"

#include "base/util.h"
#include "drop_names.h"

#include <bpf/bpf.h>
#include <string.h>

_Static_assert((int)DROP_HAS_ADDRS == (int)NETOBS_DROP_HAS_ADDRS &&
		       (int)DROP_HAS_PORTS == (int)NETOBS_DROP_HAS_PORTS &&
		       (int)DROP_HAS_REASON == (int)NETOBS_DROP_HAS_REASON &&
		       (int)DROP_IS_REST == (int)NETOBS_DROP_HAS_REST,
	       "they are copied");

static void fill_function(const struct drop_source *source,
			  const struct drop_key *key, struct netobs_drop *drop)
{
	char text[DROP_FUNCTION_LEN];

	if (!bpf_map_lookup_elem(source->functions_fd, &key->location, text)) {
		text[sizeof(text) - 1] = '\0';
		if (drop_names_split(text, drop->function,
				     sizeof(drop->function), &drop->offset))
			return;
	}
	drop_names_find(source->names, key->location, drop->function,
			sizeof(drop->function), &drop->offset);
}

void drop_fill(const struct drop_source *source, const struct drop_key *key,
	       const struct drop_value *value, int64_t time_ns,
	       struct netobs_drop *ret_drop)
{
	struct netobs_drop drop = {
		.record = { .sz = sizeof(drop),
			    .has = key->has,
			    .type = NETOBS_RECORD_DROP,
			    .time_ns = time_ns },
		.src_port = key->src_port,
		.dst_port = key->dst_port,
		.ethertype = key->ethertype,
		.protocol = key->proto,
		.unparsed = key->unparsed,
		.reason = key->reason,
		.ifindex = key->ifindex,
		.netns_inode = key->netns,
		.packets = value->packets,
		.bytes = value->bytes,
		.last_ns = clock_to_wall(source->clock, (int64_t)value->last_ns),
	};

	memcpy(drop.src, key->src.bytes, sizeof(drop.src));
	memcpy(drop.dst, key->dst.bytes, sizeof(drop.dst));
	memcpy(drop.interface, value->interface, sizeof(drop.interface));
	drop.interface[sizeof(drop.interface) - 1] = '\0';
	if (key->has & DROP_HAS_REASON)
		drop_names_cause(source->names, key->reason, drop.cause,
				 sizeof(drop.cause));
	fill_function(source, key, &drop);
	drop.kind = (uint8_t)drop_kind(drop.cause, drop.function);
	drop.layer =
		(uint8_t)drop_layer(drop.cause, drop.function, drop.ethertype);
	*ret_drop = drop;
}
