/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which groups have a series of a metric: sets of struct metrics_series, for the table of metrics. */
#ifndef NETOBS_SERVICE_METRICS_METRICS_GROUPS_H
#define NETOBS_SERVICE_METRICS_METRICS_GROUPS_H

#include "metrics_table.h"

metrics_set metrics_groups_flows; /* all */
metrics_set metrics_groups_tcp;	  /* if the service observes TCP health */
metrics_set metrics_groups_drops;
metrics_set metrics_groups_connections;
metrics_set metrics_groups_rtt; /* and with these histograms */
metrics_set metrics_groups_app_latency;

#endif
