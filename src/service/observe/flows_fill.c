/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* How options of the command are those of the library. */
#include "flows_config.h"

#include <string.h>

#include <netobs/netobs.h>
#include <netobs/probe.h>

uint64_t flows_attachment_disables(int attachment)
{
	switch (attachment) {
	case ATTACH_TCX:
		return UINT64_C(1) << NETOBS_FEATURE_CLSACT;
	case ATTACH_CLSACT:
		return UINT64_C(1) << NETOBS_FEATURE_TCX;
	default:
		return 0;
	}
}

const char *flows_config_option(const char *message, const char **ret_rest)
{
	static const struct {
		const char *library, *command;
	} names[] = {
		{ "interfaces:", "-i" },
		{ "exclude:", "-x" },
		{ "max_memory:", "--max-memory" },
		{ "max_connections:", "--max-connections" },
		{ "snap_length:", "-s" },
		{ "buffer_bytes:", "--buffer" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i].library);

		if (strncmp(message, names[i].library, len))
			continue;
		*ret_rest = message + len;
		return names[i].command;
	}
	return NULL;
}

void flows_config_fill(const struct flows_config *config, struct netobs_opts *opts)
{
	opts->interfaces = config->interfaces.items;
	opts->exclude = config->exclude.items;
	opts->filter = config->filter;
	opts->rules = config->rules.n ? config->rules.list : NULL;
	opts->n_rules = config->rules.n;
	opts->default_action = config->rules.default_action;
	if (config->direction == FLOWS_INGRESS)
		opts->direction = NETOBS_INGRESS;
	else if (config->direction == FLOWS_EGRESS)
		opts->direction = NETOBS_EGRESS;
	if (config->per_interface)
		opts->flags |= NETOBS_PER_INTERFACE;
	if (config->process)
		opts->flags |= NETOBS_PROCESSES;
	if (config->timestamps == TIMESTAMPS_PRECISE)
		opts->flags |= NETOBS_TIMESTAMPS_PRECISE;
	opts->interval_ms = config->interval_ms;
	opts->active_timeout_ms = config->active_ms;
	opts->idle_timeout_ms = config->idle_ms;
	opts->max_flows = config->max_flows;
	opts->max_memory = config->max_memory;
	opts->sampling = config->sampling_interval;
	opts->sampling_mode = config->sampling_mode;
	opts->min_bytes = config->min_bytes;
	opts->rtt = (enum netobs_rtt)config->rtt;
	opts->max_connections = config->max_connections;
	if (config->attach_order == NETOBS_ATTACH_LAST)
		opts->attach_order = NETOBS_ATTACH_LAST;
	opts->disable_features = flows_attachment_disables(config->attach);
}
