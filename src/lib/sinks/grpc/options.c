// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The messages of calls, and the options of a collector. */
#include "grpc.h"

#include <errno.h>
#include <string.h>

/* ---- Flows to /pbflow.Collector/Send, other records to /netobs.Collector/Send ------ */

static void read_pbflow(struct spec *spec, struct message_options *options,
			uint32_t types)
{
	(void)types;
	agent_read_address(spec, options->pbflow.agent_ip);
}

/* A collector may implement either service, so neither type waits for the other. */
static const char *choose_service(struct spec *spec, uint32_t types)
{
	if (!(types & PBNETOBS_TYPES))
		return "/pbflow.Collector/Send";
	if (types & SINK_TYPE(FLOW))
		spec_refuse(
			spec,
			"option records: flow goes to the service pbflow.Collector, all others to netobs.Collector: give flow a sink of its own");
	return "/netobs.Collector/Send";
}

static size_t put_pbflow(const struct message_options *options,
			 const struct netobs_record *record, uint8_t *to)
{
	return pbnetobs_has(record) ?
		       pbnetobs_entry(record, &options->pbflow, to) :
		       pbflow_entry(as_flow(record), &options->pbflow, to);
}

const struct message_kind message_pbflow = {
	.entry_max = PBFLOW_ENTRY_MAX,
	.read_options = read_pbflow,
	.choose_method = choose_service,
	.put_entry = put_pbflow,
};

/* ---- Records to a receiver of OTLP, as log records or metrics ---------------------- */

static void read_otlp(struct spec *spec, struct message_options *options,
		      uint32_t types)
{
	otlp_read(&options->otlp, spec, types);
}

static const char *choose_export(struct spec *spec, uint32_t types)
{
	(void)spec;
	if (types & OTLP_METRICS)
		return "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
	return "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
}

static size_t put_otlp(const struct message_options *options,
		       const struct netobs_record *record, uint8_t *to)
{
	(void)options;
	return otlp_entry(record, to);
}

static size_t put_otlp_head(const struct message_options *options, size_t len,
			    uint8_t *to)
{
	return otlp_head(&options->otlp, len, to);
}

const struct message_kind message_otlp = {
	.head_max = OTLP_HEAD_MAX,
	.entry_max = OTLP_ENTRY_MAX,
	.port = 4317,
	.read_options = read_otlp,
	.choose_method = choose_export,
	.put_entry = put_otlp,
	.put_head = put_otlp_head,
	.read_answer = otlp_read_answer,
	.count_items = otlp_items,
};

/* ---- Messages ---------------------------------------------------------------------- */

/* Behind the prefix, whose length is the session's. */
static bool make_message(struct call_batch *batch,
			 const struct grpc_options *options)
{
	const struct batch *records = &batch->records;
	const struct message_kind *kind = options->kind;
	size_t len = batch_tried_bytes(records);
	uint8_t *to;

	batch->message.len = 0;
	if (!buffer_reserve(&batch->message,
			    SESSION_PREFIX + kind->head_max + len))
		return false;
	to = (uint8_t *)batch->message.bytes + SESSION_PREFIX;
	if (kind->put_head)
		to += kind->put_head(&options->message, len, to);
	for (uint32_t i = 0; i < records->n_tried; i++) {
		const struct entry *entry = batch_tried(records, i);

		to = mempcpy(to, records->text.bytes + entry->at, entry->len);
	}
	batch->message.len = (size_t)(to - (uint8_t *)batch->message.bytes);
	return true;
}

int call_begin(struct call_batch *batch, uint32_t skip, uint32_t limit,
	       struct session *session, const struct grpc_options *options,
	       uint32_t deadline_ms)
{
	batch_try(&batch->records, skip, limit);
	batch->reply.len = 0;
	if (!make_message(batch, options))
		return -ENOMEM;
	return session_call(session, &batch->call,
			    (uint8_t *)batch->message.bytes, batch->message.len,
			    options->kind->read_answer ? &batch->reply : NULL,
			    deadline_ms);
}

/* ---- Options ---------------------------------------------------------------------- */

/* With options for it, TLS need not be asked for. */
static void read_tls(struct grpc_options *options, struct spec *spec,
		     struct tls_context *context)
{
	static const char *const choices[] = { "no", "yes", NULL };
	bool has_options = tls_has_options(spec);
	struct stream_options *stream = &options->session.stream;

	if (!spec_choice(spec, "tls", choices, has_options))
		tls_refuse_options(spec);
	else if (!spec->is_wrong &&
		 !tls_context_open(context, spec, stream->address.host, "\2h2"))
		stream->tls = context;
}

int grpc_options_read(struct grpc_options *options,
		      const struct message_kind *kind, struct spec *spec,
		      uint32_t types, struct tls_context *context)
{
	struct session_options *session = &options->session;

	*options = (struct grpc_options){
		.session.path = kind->choose_method(spec, types),
		.kind = kind,
	};
	address_parse(spec, spec->target, kind->port, &session->stream.address);
	kind->read_options(spec, &options->message, types);
	options->batch_bytes =
		spec_size(spec, "batch_bytes", 64 << 10, 4 << 20, 1 << 20);
	options->batch_delay_ms = (uint32_t)spec_duration_ms(spec, "batch_delay",
							     0, 60 * 1000, 1000);
	options->calls = kind->read_answer ? 1 : GRPC_CALLS_MAX;
	options->deadline_ms = (uint32_t)spec_duration_ms(
		spec, "deadline", 100, 10 * 60 * 1000, 5 * 1000);
	read_tls(options, spec, context);
	return spec_finish(spec);
}
