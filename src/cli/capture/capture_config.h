/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The command line of netobsctl capture. */
#ifndef NETOBS_CLI_CAPTURE_CAPTURE_CONFIG_H
#define NETOBS_CLI_CAPTURE_CAPTURE_CONFIG_H

#include "capture_listen.h"
#include "capture_out.h"
#include "service/observe/flows_config.h"

struct capture_config {
	struct flows_config config; /* interfaces, how, and the filter */
	struct args_list filter_words;
	int format; /* index of the choice; -1: by the name */
	const char *listen;
	struct netobs_capture_opts opts; /* what has no other member; 0: not given */
	uint32_t duration_ms, verbose;
	uint64_t count;
	bool stats, process;

	struct capture_out_options out;
};

enum args_result capture_config_parse(struct capture_config *config, int argc,
				      char **argv);

void capture_config_clear(struct capture_config *config);

/* Everything but the callbacks; borrows from @config. */
void capture_config_fill(const struct capture_config *config,
			 struct netobs_capture_opts *opts);

#endif
