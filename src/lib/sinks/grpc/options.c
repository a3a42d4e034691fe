// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The messages of calls, and the options of a collector. */
#include "grpc.h"

#include <errno.h>
#include <string.h>

/* ---- Messages ---------------------------------------------------------------------- */

size_t call_put_entry(const struct grpc_options *options,
		      const struct netobs_record *record, uint8_t *to)
{
	if (options->is_otlp)
		return otlp_entry(record, to);
	return pbnetobs_has(record) ?
		       pbnetobs_entry(record, &options->pbflow, to) :
		       pbflow_entry(as_flow(record), &options->pbflow, to);
}

/* Write the message behind the prefix, whose length the session has. */
static bool make_message(struct call_batch *batch,
			 const struct grpc_options *options)
{
	const struct batch *records = &batch->records;
	size_t len = batch_tried_bytes(records);
	uint8_t *to;

	batch->message.len = 0;
	if (!buffer_reserve(&batch->message,
			    SESSION_PREFIX + options->head_max + len))
		return false;
	to = (uint8_t *)batch->message.bytes + SESSION_PREFIX;
	if (options->is_otlp)
		to += otlp_head(&options->otlp, len, to);
	for (uint32_t i = 0; i < records->n_tried; i++) {
		const struct entry *entry = batch_tried(records, i);

		to = mempcpy(to, records->text.bytes + entry->at, entry->len);
	}
	batch->message.len = (size_t)(to - (uint8_t *)batch->message.bytes);
	return true;
}

int call_begin(struct call_batch *batch, struct session *session,
	       const struct grpc_options *options, uint32_t deadline_ms)
{
	batch_try(&batch->records);
	batch->reply.len = 0;
	if (!make_message(batch, options))
		return -ENOMEM;
	return session_call(session, &batch->call,
			    (uint8_t *)batch->message.bytes, batch->message.len,
			    options->is_otlp ? &batch->reply : NULL, deadline_ms);
}

/* ---- Options ---------------------------------------------------------------------- */

/* A collector may implement either service of ours, so neither type waits for the other. */
static const char *choose_method(struct spec *spec, bool is_otlp, uint32_t types)
{
	if (is_otlp)
		return types & OTLP_METRICS ?
			       "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" :
			       "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
	if (!(types & PBNETOBS_TYPES))
		return "/pbflow.Collector/Send";
	if (types & SINK_TYPE(FLOW))
		spec_refuse(
			spec,
			"option records: flow goes to the service pbflow.Collector, all others to netobs.Collector: give flow a sink of its own");
	return "/netobs.Collector/Send";
}

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

int grpc_options_read(struct grpc_options *options, struct spec *spec,
		      uint32_t types, struct tls_context *context)
{
	const bool is_otlp = !strcmp(spec->kind, "otlp");
	struct session_options *session = &options->session;

	*options = (struct grpc_options){
		.session.path = choose_method(spec, is_otlp, types),
		.is_otlp = is_otlp,
		.entry_max = is_otlp ? OTLP_ENTRY_MAX : PBFLOW_ENTRY_MAX,
		.head_max = is_otlp ? OTLP_HEAD_MAX : 0,
	};
	address_parse(spec, spec->target, is_otlp ? 4317 : 0,
		      &session->stream.address);
	if (is_otlp)
		otlp_read(&options->otlp, spec, types);
	else
		agent_read_address(spec, options->pbflow.agent_ip);
	options->batch_bytes =
		spec_size(spec, "batch_bytes", GRPC_BATCH_MIN, 4 << 20, 1 << 20);
	options->batch_delay_ms = (uint32_t)spec_duration_ms(spec, "batch_delay",
							     0, 60 * 1000, 1000);
	options->deadline_ms = (uint32_t)spec_duration_ms(
		spec, "deadline", 100, 10 * 60 * 1000, 5 * 1000);
	read_tls(options, spec, context);
	return spec_finish(spec);
}
