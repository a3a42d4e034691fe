// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "grpc.h"

#include "base/util.h"
#include "sinks/pbflow/wire.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool batch_has_room(struct batch *batch, const struct grpc_options *options)
{
	const size_t entry_max = options->kind->entry_max;
	const size_t head_max = SESSION_PREFIX + options->kind->head_max;

	/* Room for the prefix and the head is there first. */
	batch->message.len = max_u64(batch->message.len, head_max);
	return batch->message.len + entry_max <=
		       SESSION_PREFIX + options->batch_bytes &&
	       buffer_reserve(&batch->message, entry_max) &&
	       (!options->kind->read_answer ||
		buffer_reserve(&batch->places, sizeof(struct batch_place)));
}

/* ---- The first one, for the log -------------------------------------------------- */

struct end {
	const uint8_t *address;
	uint16_t port;
};

/* What a record of any type is about. */
struct subject {
	struct end from, to;
	uint8_t proto;
	bool is_v4, has_ports;
};

/* False: nothing is known of records of that type here. */
static bool find_subject(const struct netobs_record *record,
			 struct subject *ret_subject)
{
	const struct netobs_session *session = (const void *)record;
	const struct netobs_alert *alert = (const void *)record;
	const struct netobs_mapping *mapping = (const void *)record;
	const struct netobs_drop *drop = (const void *)record;
	const struct netobs_trace_event *event = (const void *)record;
	const struct netobs_journey *journey = (const void *)record;
	const struct netobs_flow *flow = (const void *)record;

	switch (record->type) {
	case NETOBS_RECORD_FLOW:
		*ret_subject = (struct subject){
			.from = { flow->src, flow->src_port },
			.to = { flow->dst, flow->dst_port },
			.proto = flow->proto,
			.is_v4 = flow->ethertype != ETHERTYPE_IPV6,
			.has_ports = flow->has & NETOBS_HAS_PORTS,
		};
		return true;
	case NETOBS_RECORD_SESSION:
		*ret_subject = (struct subject){
			.from = { session->local_addr, session->local_port },
			.to = { session->remote_addr, session->remote_port },
			.proto = session->protocol,
			.is_v4 = is_v4_mapped(session->remote_addr),
			.has_ports = true,
		};
		return true;
	case NETOBS_RECORD_ALERT:
		*ret_subject = (struct subject){
			.from = { alert->client, alert->client_port },
			.to = { alert->server, alert->server_port },
			.proto = alert->protocol,
			.is_v4 = is_v4_mapped(alert->server),
			.has_ports = true,
		};
		return true;
	case NETOBS_RECORD_MAPPING:
		*ret_subject = (struct subject){
			.from = { mapping->src, mapping->src_port },
			.to = { mapping->dst, mapping->dst_port },
			.proto = mapping->protocol,
			.is_v4 = is_v4_mapped(mapping->src),
			.has_ports = mapping->record.has &
				     NETOBS_MAPPING_HAS_PORTS,
		};
		return true;
	case NETOBS_RECORD_DROP:
		*ret_subject = (struct subject){
			.from = { drop->src, drop->src_port },
			.to = { drop->dst, drop->dst_port },
			.proto = drop->protocol,
			.is_v4 = is_v4_mapped(drop->src),
			.has_ports = drop->record.has & NETOBS_DROP_HAS_PORTS,
		};
		return drop->record.has & NETOBS_DROP_HAS_ADDRS;
	case NETOBS_RECORD_TRACE:
		*ret_subject = (struct subject){
			.from = { event->src, event->src_port },
			.to = { event->dst, event->dst_port },
			.proto = event->protocol,
			.is_v4 = is_v4_mapped(event->src),
			.has_ports = true,
		};
		return true;
	case NETOBS_RECORD_JOURNEY:
		*ret_subject = (struct subject){
			.from = { journey->src, journey->src_port },
			.to = { journey->dst, journey->dst_port },
			.proto = journey->protocol,
			.is_v4 = is_v4_mapped(journey->src),
			.has_ports = true,
		};
		return true;
	default:
		return false;
	}
}

static void print_end(const struct subject *subject, const struct end *end,
		      char text[static 64])
{
	const bool is_v4 = subject->is_v4;
	char ip[INET6_ADDRSTRLEN] = "";

	inet_ntop(is_v4 ? AF_INET : AF_INET6, end->address + (is_v4 ? 12 : 0),
		  ip, sizeof(ip));
	if (subject->has_ports)
		snprintf(text, 64, is_v4 ? "%s:%u" : "[%s]:%u", ip, end->port);
	else
		snprintf(text, 64, "%s", ip);
}

static void describe_record(const struct netobs_record *record, char *text,
			    size_t size)
{
	const char *type = netobs_record_type_name(record->type);
	struct subject subject;
	char from[64], to[64];

	if (!find_subject(record, &subject)) {
		snprintf(text, size, "%s", type);
		return;
	}
	print_end(&subject, &subject.from, from);
	print_end(&subject, &subject.to, to);
	snprintf(text, size, "%s of protocol %u from %s to %s", type,
		 subject.proto, from, to);
}

/* ---- Adding ---------------------------------------------------------------------- */

static void note_place(struct batch *batch, const struct sink_item *item,
		       const struct message_kind *kind)
{
	const struct batch_place place = { item->end,
					   kind->count_items(item->record) };

	buffer_add(&batch->places, &place, sizeof(place));
}

void batch_add(struct batch *batch, const struct sink_item *item,
	       const struct grpc_options *options)
{
	const struct netobs_record *record = item->record;
	uint8_t *to;

	if (!batch->n_records) {
		batch->from = item->end.seq - 1;
		describe_record(record, batch->first, sizeof(batch->first));
	}
	to = (uint8_t *)batch->message.bytes + batch->message.len;
	batch->message.len +=
		options->kind->put_entry(&options->message, record, to);
	batch->end = batch->settled = item->end;
	batch->n_records++;
	if (options->kind->read_answer)
		note_place(batch, item, options->kind);
}

uint32_t batch_find_items(const struct batch *batch, uint64_t items)
{
	uint32_t n = 0;

	while (items && n < batch->n_records)
		items -= min_u64(
			items, batch_place(batch, batch->n_records - ++n)->items);
	return n;
}

/* The head is right in front of the records. */
int batch_send(struct batch *batch, struct session *session,
	       const struct grpc_options *options, uint32_t deadline_ms)
{
	const struct message_kind *kind = options->kind;
	const size_t room = SESSION_PREFIX + kind->head_max;
	uint8_t head[OTLP_HEAD_MAX], *start;
	size_t len = 0;

	if (kind->put_head)
		len = kind->put_head(&options->message,
				     batch->message.len - room, head);
	start = (uint8_t *)batch->message.bytes + room - len;
	memcpy(start, head, len);
	start -= SESSION_PREFIX;
	batch->reply.len = 0;
	batch->is_judged = false;
	return session_call(session, &batch->call, start,
			    batch->message.len - (room - len - SESSION_PREFIX),
			    kind->read_answer ? &batch->reply : NULL,
			    deadline_ms);
}

void batch_clear(struct batch *batch)
{
	batch->message.len = 0;
	batch->places.len = 0;
	batch->n_records = 0;
	batch->call = (struct call){ 0 };
}

void batch_free(struct batch *batch)
{
	buffer_free(&batch->message);
	buffer_free(&batch->places);
	buffer_free(&batch->reply);
	*batch = (struct batch){ 0 };
}
