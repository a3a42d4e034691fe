/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Implements netobsctl map: mappings of a running service, of a context of its own, or of the kernel. */
#ifndef NETOBS_CLI_MAP_MAPPING_WATCH_H
#define NETOBS_CLI_MAP_MAPPING_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct mapping_request {
	const char *socket; /* socket of the service; NULL: the default one, if there is a service */
	const char *netns; /* namespace whose table the kernel lists; NULL: ask the service first */
	const char *tuple; /* to look for; NULL: all */
	bool once;
	bool is_json;
	uint32_t interval_ms;
	uint32_t duration_ms; /* 0: until a signal comes */
	uint32_t rows;	      /* 0: all */
	uint32_t verbose;
};

/** @return an exit status */
int mapping_watch(const struct mapping_request *request);

#endif
