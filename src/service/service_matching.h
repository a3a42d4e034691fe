/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Checks a configuration for types of records without a sink or a source, and for names without records. */
#ifndef NETOBS_SERVICE_SERVICE_MATCHING_H
#define NETOBS_SERVICE_SERVICE_MATCHING_H

#include "service_config.h"

/*
 * Call @warn for each type of records that is made but that no sink takes, and for each that a sink
 * takes but that is not made.
 */
void service_match_sinks(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user);

/** Call @warn where names of containers are looked for, and no record can have one. */
void service_match_names(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user);

#endif
