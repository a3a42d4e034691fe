/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records, alerts and intervals that the library delivers to a service, and the options for them. */
#ifndef NETOBS_SERVICE_SERVICE_RECORDS_H
#define NETOBS_SERVICE_SERVICE_RECORDS_H

#include "service.h"

/* Fill @opts of the context by @config, with callbacks that pass all to groups, sinks, rules and metrics. */
void service_fill_options(struct service *service,
			  const struct service_config *config,
			  struct netobs_opts *opts);

/* Set the callbacks of the observers beside the context, and of the sinks. */
void service_set_callbacks(struct service *service);

/*
 * Deliver waiting sessions, in order, up to the first one whose conversation is not known before the drain
 * ends.
 */
void service_deliver_known_sessions(struct service *service);

/* Deliver all sessions that wait, also those whose conversations are not known before a drain ends. */
void service_deliver_sessions(struct service *service);

/* Deliver the records of groups for the interval that ends now. */
void service_end_groups_interval(struct service *service);

/**
 * Apply the groups of the configuration in use. Unchanged groups keep their counts; the previous sinks get the last
 * records of the others.
 *
 * @return 0; < 0: some are missing, which was logged
 */
int service_commit_groups(struct service *service);

#endif
