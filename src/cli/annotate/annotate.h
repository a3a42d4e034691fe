/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Adds to records of other programs, in JSON, what netobs knows of their conversations. */
#ifndef NETOBS_CLI_ANNOTATE_ANNOTATE_H
#define NETOBS_CLI_ANNOTATE_ANNOTATE_H

#include <stddef.h>
#include <stdint.h>

struct annotate_request {
	const char *const *files; /* to annotate; none: standard input */
	size_t n_files;
	const char *const *sources; /* files with records of netobs */
	size_t n_sources;
	/* Asked for mappings if there are no sources, or if one of these is not NULL. */
	const char *socket, *netns;
};

/**
 * Write the files to standard output, with members added to records, and a summary to stderr.
 *
 * @return an exit status
 */
int annotate_files(const struct annotate_request *request);

#endif
