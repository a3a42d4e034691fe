// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "grpc.h"

#include "base/util.h"
#include "sink/member_names.h"

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

static void print_end(const struct raw_member *address,
		      const struct raw_member *port, char text[static 64])
{
	bool has_brackets = port->value &&
			    memchr(address->value, ':', address->value_len);

	snprintf(text, 64, "%s%.*s%s%s%.*s", has_brackets ? "[" : "",
		 (int)address->value_len - 2, address->value + 1,
		 has_brackets ? "]" : "", port->value ? ":" : "",
		 (int)port->value_len, port->value ?: "");
}

static void describe_record(const struct netobs_record *record, char *text,
			    size_t size)
{
	static const char *const keys[] = { "Proto", "SrcAddr", "SrcPort",
					    "DstAddr", "DstPort" };
	const char *type = netobs_record_type_name(record->type);
	struct raw_member found[ARRAY_SIZE(keys)] = { 0 }, member;
	char json[RECORD_JSON_MAX], from[64], to[64];
	const char *at = json + 1;

	if (netobs_record_json(record, json, sizeof(json)) < 0)
		return;
	while (raw_member_next(&at, &member))
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (raw_member_is(&member, keys[i]))
				found[i] = member;
	if (!found[1].value || !found[3].value) {
		snprintf(text, size, "%s", type);
		return;
	}
	print_end(&found[1], &found[2], from);
	print_end(&found[3], &found[4], to);
	snprintf(text, size, "%s of protocol %.*s from %s to %s", type,
		 (int)found->value_len, found->value ?: "", from, to);
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
