/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Options of observing flows, of the service and of commands. */
#ifndef NETOBS_SERVICE_OBSERVE_FLOWS_CONFIG_H
#define NETOBS_SERVICE_OBSERVE_FLOWS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/netobs.h>

#include "service/metrics/metrics.h"
#include "service/options/rules.h"
#include "service/options/args.h"
#include "service/options/privileges.h"

/* Choices of --attach. */
enum attach { ATTACH_AUTO, ATTACH_TCX, ATTACH_CLSACT };

struct flows_config {
	struct netobs_opts opts; /* options without a member of their own; 0: not given */
	struct args_list interfaces, exclude;
	int attach; /* index of the choice */
	bool per_interface;
	bool rtt;	      /* the health of TCP connections is measured */
	bool process;	      /* the processes at the ends of flows are found */
	bool container_names; /* are found, and those of pods */
	bool nat;	      /* the addresses that NAT gives flows are found */
	bool drops; /* observe the kernel's drops of packets of flows */
	const char *sampling; /* for opts.sampling and its mode; NULL: not given */
	char *filter;	      /* NULL: none */
	const char *rules_path; /* NULL: not given */
	struct rules rules;
	struct alert_rules alerts;
	struct metrics_config metrics;
};

void flows_config_clear(struct flows_config *config);

/* @return whether something that rules of alerts may be about is measured */
static inline bool flows_may_alert(const struct flows_config *config)
{
	return config->rtt || config->drops;
}

/**
 * Check values beyond their types.
 *
 * @param ret_why  unchanged if they are right
 * @return whether they are
 */
bool flows_check_interface(const char *name, char *ret_why, size_t size);
bool flows_check_interval(uint32_t interval_ms, char *ret_why, size_t size);
bool flows_parse_sampling(struct flows_config *config, char *ret_why,
			  size_t size);

/** @return the features that are not to be used: bits by enum netobs_feature */
uint64_t flows_attachment_disables(int attachment);

/** @return what privileges_drop() is to keep for them: enum privileges_kept */
unsigned int flows_config_privileges(const struct flows_config *config);

/* Everything but the callbacks; borrows from @config. */
void flows_config_fill(const struct flows_config *config,
		       struct netobs_opts *opts);

#endif
