/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reads the configuration of a service, and replaces it. The new one is read and checked, its sinks
 * are opened, its observers and the change of the context prepared, beside the one in use; all of
 * this may fail without a trace. The last step puts it in the place of the old one. Only a sink that
 * needs the spool or the file of its predecessor is opened later, once that has been closed.
 */
#ifndef NETOBS_SERVICE_SERVICE_RELOAD_H
#define NETOBS_SERVICE_SERVICE_RELOAD_H

#include "service.h"

/**
 * @param leaves_filters  as for service_config_read()
 * @return NULL: it is wrong, which was logged
 */
struct service_config *service_read_config(struct service *service,
					   bool leaves_filters);

/* @config: or NULL */
void service_free_config(struct service_config *config);

/** Set the rules of @config. @return 0; < 0: the previous rules stay, which was logged */
int service_set_alerts(struct service *service,
		       const struct service_config *config);

/**
 * Read the configuration again, once an earlier reload is over, and apply it. If that fails,
 * the previous configuration stays in use. Nothing waits for it: service_tend() works in steps.
 */
void service_reload(struct service *service);

/** Continue with a reload, if there is one: after each service_dispatch(). */
void service_tend(struct service *service);

/** @return milliseconds until the next call of service_dispatch() and service_tend(); -1: no limit */
int service_rest(const struct service *service);

#endif
