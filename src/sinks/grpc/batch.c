// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "batch.h"

#include "base/util.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_SIZE = 64 << 10 };

/* Twice as large each time: few hosts have as many flows as would fill it. */
static bool grow_batch(struct batch *batch, size_t size)
{
	uint8_t *bytes;

	size = max_u64(size, max_u64(2 * batch->size, FIRST_SIZE));
	bytes = realloc(batch->bytes, size);
	if (!bytes)
		return false;
	batch->bytes = bytes;
	batch->size = size;
	return true;
}

bool batch_has_room(struct batch *batch, size_t max_bytes)
{
	size_t used = max_u64(batch->len, SESSION_PREFIX);
	size_t needed = used + PBFLOW_ENTRY_MAX;

	if (needed > SESSION_PREFIX + max_bytes)
		return false;
	return needed <= batch->size || grow_batch(batch, needed);
}

static void put_end(const struct netobs_flow *flow, const uint8_t address[16],
		    uint16_t port, char text[static 64])
{
	bool is_v4 = flow->ethertype != ETHERTYPE_IPV6;
	char ip[INET6_ADDRSTRLEN] = "";

	inet_ntop(is_v4 ? AF_INET : AF_INET6, address + (is_v4 ? 12 : 0), ip,
		  sizeof(ip));
	if (flow->has & NETOBS_HAS_PORTS)
		snprintf(text, 64, is_v4 ? "%s:%u" : "[%s]:%u", ip, port);
	else
		snprintf(text, 64, "%s", ip);
}

static void describe_record(const struct netobs_flow *flow, char *text,
			    size_t size)
{
	char src[64], dst[64];

	put_end(flow, flow->src, flow->src_port, src);
	put_end(flow, flow->dst, flow->dst_port, dst);
	snprintf(text, size, "protocol %u from %s to %s", flow->proto, src, dst);
}

void batch_add(struct batch *batch, const struct sink_item *item,
	       const struct pbflow_options *options)
{
	const struct netobs_flow *flow = as_flow(item->record);

	if (!batch->len)
		batch->len = SESSION_PREFIX;
	if (!batch->n_records) {
		batch->from = item->end.seq - 1;
		describe_record(flow, batch->first, sizeof(batch->first));
	}
	batch->len += pbflow_entry(flow, options, batch->bytes + batch->len);
	batch->end = batch->settled = item->end;
	batch->n_records++;
}

void batch_clear(struct batch *batch)
{
	batch->len = 0;
	batch->n_records = 0;
	batch->call = (struct call){ 0 };
}

void batch_free(struct batch *batch)
{
	free(batch->bytes);
	*batch = (struct batch){ 0 };
}
