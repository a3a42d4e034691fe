// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Flows to /pbflow.Collector/Send, and other records to /netobs.Collector/Send. */
#include "message.h"

static void read_pbflow(struct spec *spec, struct message_options *options,
			uint32_t types)
{
	(void)types;
	pbflow_read_options(spec, &options->pbflow);
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
