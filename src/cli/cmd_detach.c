/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <netobs/persist.h>

#include "service/options/args.h"

struct options {
	const char *persist_dir;
};

static const struct args_option options[] = {
#define SELECT_detach OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "detach",
	.summary = "Remove the programs and tables that the service has left in the kernel",
	.options = options,
	.positional = "detach has no operands",
	.notes = "With persist = yes, packets are counted while the service is stopped; this ends that,\n"
		 "and loses the packets that were not reported. If nothing is left, nothing happens.\n",
};

int cmd_detach(int argc, char **argv)
{
	struct netobs_persisted removed = { .sz = sizeof(removed) };
	struct options wanted = { 0 };
	enum args_result result = args_parse(&command, argc, argv, &wanted);
	const char *path = wanted.persist_dir ?: NETOBS_PERSIST_DIR;
	int r;

	if (result != ARGS_RUN)
		return result;
	r = netobs_persisted_remove(path, &removed);
	if (r == -ENOENT) {
		printf("%s: nothing is left there\n", path);
		return EXIT_FINE;
	}
	if (r == -EBUSY)
		fprintf(stderr,
			"netobsctl detach: %s: process %u uses it: stop the service first\n",
			path, removed.owner);
	else if (r == -EPERM || r == -EACCES)
		fprintf(stderr,
			"netobsctl detach: %s: %s: it needs CAP_BPF, CAP_NET_ADMIN and, for other network "
			"namespaces, CAP_SYS_ADMIN: run it as root\n",
			path, strerror(-r));
	else if (r < 0)
		fprintf(stderr, "netobsctl detach: %s: %s\n", path,
			r == -ENOTSUP ? "not in a BPF file system" :
					strerror(-r));
	if (r < 0)
		return EXIT_FAILED;
	printf("%s: removed programs at %u hooks and their tables; %" PRIu64
	       " packets had not been reported\n",
	       path, removed.links, removed.waiting.packets);
	return EXIT_FINE;
}
