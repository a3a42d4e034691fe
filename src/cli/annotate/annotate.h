/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Adds to records of other programs, in JSON, what netobs knows of their conversations. */
#ifndef NETOBS_CLI_ANNOTATE_ANNOTATE_H
#define NETOBS_CLI_ANNOTATE_ANNOTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/options/args.h"

/* The options of netobsctl map, also of its words beside the table: lookup, annotate and --services. */
struct map_options {
	const char *socket; /* socket of the service; NULL: the default one, if there is a service */
	const char *netns; /* namespace whose table the kernel lists; NULL: ask the service first */
	const char *tuple; /* to look for; NULL: all */
	bool once;
	int output; /* enum services_format */
	uint32_t interval_ms;
	uint32_t duration_ms; /* 0: until a signal comes */
	uint32_t rows;	      /* 0: all */
	uint32_t verbose;
	struct args_list operands; /* words, and files */
	struct args_list records; /* files in which annotate finds conversations */
	bool is_of_services;
	const char *svg;      /* a file; NULL: none */
	bool container_names; /* find them for services */
	const char *container_root;
	uint64_t given; /* options given, as args_parse() stores them */
};

/**
 * Write the files behind the first operand, or standard input, to standard output, with members added
 * to records, and a summary to stderr. Conversations are those of @records; mappings are asked for if
 * there are none, or if there is @socket or @netns.
 *
 * @return an exit status
 */
int annotate_files(const struct map_options *options);

#endif
