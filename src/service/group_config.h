/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The sections [group "NAME"] of the configuration. */
#ifndef NETOBS_SERVICE_GROUP_CONFIG_H
#define NETOBS_SERVICE_GROUP_CONFIG_H

#include <netobs/series.h>

struct service_config;
struct conf_entry;

/** Add the group of a section to the configuration, or report an error. */
void group_config_add(struct service_config *config,
		      const struct conf_entry *header);

struct service_group_config;

/** @return as netobs_series_new() */
int group_config_open(const struct service_group_config *group,
		      struct netobs_networks *networks,
		      char (*error)[NETOBS_ERROR_MAX],
		      struct netobs_series **ret_series);

#endif
