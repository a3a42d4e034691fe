/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The sections [network "NAME"] of the configuration. */
#ifndef NETOBS_SERVICE_NETWORK_CONFIG_H
#define NETOBS_SERVICE_NETWORK_CONFIG_H

struct service_config;

/** Fill the networks of the configuration, or report an error. */
void network_config_take(struct service_config *config);

#endif
