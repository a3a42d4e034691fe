// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records to a receiver of OTLP, as log records or metrics. */
#include "message.h"

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
