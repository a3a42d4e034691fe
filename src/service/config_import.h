/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The environment variables of NetObserv's agent as a configuration: docs/netobserv.md. */
#ifndef NETOBS_SERVICE_CONFIG_IMPORT_H
#define NETOBS_SERVICE_CONFIG_IMPORT_H

/**
 * Print a configuration for the variables that are set. What has no equal is reported on
 * standard error.
 *
 * @return 0; -EINVAL: there would be no sink, or a value is wrong
 */
int config_import(void);

#endif
