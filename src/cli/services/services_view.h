/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map as a table, as JSON, and as a picture. */
#ifndef NETOBS_CLI_SERVICES_SERVICES_VIEW_H
#define NETOBS_CLI_SERVICES_SERVICES_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/services.h>

#include "cli/annotate/annotate.h"

/* ---- Services -------------------------------------------------------------------------- */

/* netobsctl map --services: who uses which service, as seen by this host, or in records of many. */

/* The choices of --output. */
enum services_format { SERVICES_TABLE, SERVICES_JSON };

/** Map the services of the files in the operands, or those of this host. @return an exit status */
int services_of_files(const struct map_options *options);
int services_of_host(const struct map_options *options);

/* ---- Services view --------------------------------------------------------------------- */

/* Rows of a map, in their order. */
struct services_view {
	struct netobs_services *services; /* after netobs_services_rows() */
	int64_t time_ms;     /* end of the shown time, since 1970 */
	int64_t duration_ms; /* for rates; 0: not known */
};

static inline uint64_t edge_bytes(const struct netobs_edge *edge)
{
	return edge->bytes[0] + edge->bytes[1];
}

static inline uint64_t edge_errors(const struct netobs_edge *edge)
{
	return edge->refused + edge->resets + edge->timeouts + edge->failed;
}

/* "10.0.0.1:443/TCP", or without a port "10.0.0.1/ICMP", with the name of a workload behind it: " (shop/web-0)" */
void services_label(char *buf, size_t size, const struct netobs_edge *edge);

/* "10.0.0.2", likewise */
void services_client_label(char *buf, size_t size,
			   const struct netobs_edge *edge);

/** Replace the file at @path. @return 0; < 0: it could not be written, and is as it was */
int services_write_svg(const char *path, const struct services_view *view);

/**
 * Print it to standard output as it was asked for, and draw it.
 *
 * @param width  of lines of a table, at most; 0: there is no limit
 * @return 0; < 0: it could not be written, which was reported
 */
int services_show(const struct map_options *options,
		  const struct services_view *view, uint32_t width);

#endif
