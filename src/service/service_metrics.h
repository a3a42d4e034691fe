/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The metrics of a service. */
#ifndef NETOBS_SERVICE_SERVICE_METRICS_H
#define NETOBS_SERVICE_SERVICE_METRICS_H

#include "service.h"

/** An address that is in use is reported before programs are attached. @return 0; < 0: which was logged */
int service_open_metrics(struct service *service);

/** Answer requests for metrics; when metrics_fd() polls readable. */
void service_serve_metrics(struct service *service);

/* Use the present sinks and rules for the metrics. */
void service_refresh_metrics(struct service *service);

#endif
