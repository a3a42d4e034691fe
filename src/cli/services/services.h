/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* netobsctl map --services: who uses which service, as seen by this host, or in records of many. */
#ifndef NETOBS_CLI_SERVICES_SERVICES_H
#define NETOBS_CLI_SERVICES_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum services_format { SERVICES_TABLE, SERVICES_JSON, SERVICES_DOT };

struct services_request {
	const char *const *files; /* files of records; none: observe this host */
	size_t n_files;
	enum services_format format;
	const char *svg; /* a file that the map is drawn to; NULL: none */
	bool container_names; /* find those of this host, below container_root, or "/" */
	const char *container_root;
	uint32_t rows; /* edges at most; 0: all */
	bool once;     /* end after one interval */
	uint32_t interval_ms;
	uint32_t duration_ms; /* 0: until a signal comes */
	uint32_t verbose;
};

/** @return an exit status */
int services_map(const struct services_request *request);

/* The parts of it. */
int services_of_files(const struct services_request *request);
int services_of_host(const struct services_request *request);

#endif
