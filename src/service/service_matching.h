/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether sinks take the types of records that the service makes, and no others. */
#ifndef NETOBS_SERVICE_SERVICE_MATCHING_H
#define NETOBS_SERVICE_SERVICE_MATCHING_H

#include "service_config.h"

/*
 * Call @warn for each type of records that is made, and that no sink takes, and for each that a sink
 * takes, and that nothing makes.
 */
void service_match_sinks(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user);

#endif
