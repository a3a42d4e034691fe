/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the library delivers to a service, and by which options: records, alerts and intervals. */
#ifndef NETOBS_SERVICE_SERVICE_RECORDS_H
#define NETOBS_SERVICE_SERVICE_RECORDS_H

#include "service.h"

/* Fill @opts of the context by @config, with callbacks that pass all to groups, sinks, rules and metrics. */
void service_fill_options(struct service *service,
			  const struct service_config *config,
			  struct netobs_opts *opts);

/* The same for the observers beside the context, and for the sinks. */
void service_set_callbacks(struct service *service);

/* Deliver what the groups have of the interval that ends now. */
void service_end_groups_interval(struct service *service);

/**
 * Apply the groups of the configuration in use. Groups that stay the same keep what they have counted; sinks of
 * before get records of others.
 *
 * @return 0; < 0: some are missing, which was logged
 */
int service_commit_groups(struct service *service);

/* Other sinks cannot take back records that they have sent. No commit contains alerts. */
bool service_has_disks_only(const struct service_config *config);

#endif
