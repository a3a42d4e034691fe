/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The control socket of a service: docs/control.md. */
#ifndef NETOBS_SERVICE_SERVICE_CONTROL_H
#define NETOBS_SERVICE_SERVICE_CONTROL_H

#include "service.h"

/**
 * Without a configured path, the socket is optional: another service may use the default path.
 *
 * @return 0; < 0: cannot listen at the configured path, which was logged
 */
int service_open_control(struct service *service);

#endif
