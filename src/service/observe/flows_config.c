/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flows_config.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/probe.h>

#include "base/options.h"

enum { MIN_INTERVAL_MS = 10 }; /* the library's */

/* @return a hint for text that the library would take for a name of an interface; NULL: it may be a name */
static const char *find_hint(const char *name)
{
	if (!strcmp(name, "any"))
		return "all interfaces are observed without this option";
	if (strpbrk(name, "*?["))
		return "patterns are regular expressions between slashes, "
		       "such as /^veth/";
	if (strchr(name, ','))
		return "repeat the option for each interface";
	return NULL;
}

bool flows_check_interface(const char *name, char *ret_why, size_t size)
{
	const char *hint = *name == '/' || !strncmp(name, "netns:", 6) ?
				   NULL :
				   find_hint(name);

	if (!hint || if_nametoindex(name))
		return true;
	snprintf(ret_why, size, "no such interface; %s", hint);
	return false;
}

bool flows_check_interval(uint32_t interval_ms, char *ret_why, size_t size)
{
	if (!interval_ms || interval_ms >= MIN_INTERVAL_MS)
		return true;
	snprintf(ret_why, size, "it must be at least %d ms", MIN_INTERVAL_MS);
	return false;
}

bool flows_parse_sampling(struct flows_config *config, char *ret_why, size_t size)
{
	static const char prefix[] = "flow:";
	const char *text = config->sampling;
	const bool is_of_flows = text && !strncmp(text, prefix, strlen(prefix));
	uint64_t interval = 1;

	if (text && value_parse(VALUE_NUMBER,
				is_of_flows ? text + strlen(prefix) : text, 1,
				UINT32_MAX, &interval)) {
		snprintf(ret_why, size,
			 "'%s' is not a whole number from 1 to 4294967295, or "
			 "flow: and such a number",
			 text);
		return false;
	}
	if (is_of_flows)
		config->opts.sampling_mode = NETOBS_SAMPLE_FLOWS;
	config->opts.sampling = interval > 1 ? (uint32_t)interval : 0;
	return true;
}

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

/* Each of these options looks for processes behind pairs of interfaces. */
unsigned int flows_config_privileges(const struct flows_config *config)
{
	const bool needs_processes = config->process || config->nat ||
				     config->drops;

	return KEEP_PROGRAMS | (needs_processes ? KEEP_PROCESSES : 0);
}

void flows_config_fill(const struct flows_config *config, struct netobs_opts *opts)
{
	*opts = config->opts;
	opts->sz = sizeof(*opts);
	opts->interfaces = config->interfaces.items;
	opts->exclude = config->exclude.items;
	opts->filter = config->filter;
	opts->rules = config->rules.n ? config->rules.list : NULL;
	opts->n_rules = config->rules.n;
	opts->default_action = config->rules.default_action;
	opts->rtt = config->rtt;
	opts->disable_features = flows_attachment_disables(config->attach);
	opts->flags = (config->per_interface ? NETOBS_PER_INTERFACE : 0) |
		      (config->process ? NETOBS_PROCESSES : 0) |
		      (config->container_names ? NETOBS_CONTAINER_NAMES : 0) |
		      (config->nat ? NETOBS_NAT : 0) |
		      (config->drops ? NETOBS_DROPS : 0);
}

void flows_config_clear(struct flows_config *config)
{
	args_list_clear(&config->interfaces);
	args_list_clear(&config->exclude);
	alert_rules_clear(&config->alerts);
	free(config->filter);
	config->filter = NULL;
	rules_clear(&config->rules);
}
