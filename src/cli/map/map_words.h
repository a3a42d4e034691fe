/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The words behind `netobsctl map`: none for the table, lookup TUPLE, annotate [FILE...], or the files of
 * --services.
 */
#ifndef NETOBS_CLI_MAP_MAP_WORDS_H
#define NETOBS_CLI_MAP_MAP_WORDS_H

#include "mapping_watch.h"
#include "service/options/args.h"
#include "cli/services/services.h"

struct map_words {
	struct args_list operands;
	struct args_list records; /* files in which annotate finds conversations */
	uint32_t slack_ms;
	bool is_of_services;
	const char *svg;      /* a file; NULL: none */
	bool container_names; /* find them for services */
	const char *container_root;
	int output;	/* enum services_format */
	uint64_t given; /* options given, as args_parse() stores them */
};

/**
 * Run the command.
 *
 * @param request  its members tuple and once are set here
 * @return an exit status; EXIT_USAGE: the words are wrong, which was printed
 */
int map_words_run(const struct args_command *command,
		  const struct map_words *words, struct mapping_request *request);

#endif
