/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Implements netobsctl map: mappings of a running service, of a context of its own, or of the kernel. */
#ifndef NETOBS_CLI_MAP_MAPPING_WATCH_H
#define NETOBS_CLI_MAP_MAPPING_WATCH_H

#include "cli/services/services_view.h"
#include "service/options/args.h"

/* The options of the verb, also of its words beside the table: lookup, annotate and --services. */
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
	struct args_list operands;
	struct args_list records; /* files in which annotate finds conversations */
	bool is_of_services;
	const char *svg;      /* a file; NULL: none */
	bool container_names; /* find them for services */
	const char *container_root;
	uint64_t given; /* options given, as args_parse() stores them */
};

/** @return an exit status */
int mapping_watch(const struct map_options *options);

#endif
