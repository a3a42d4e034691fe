/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Runs netobs-bench, a program of its own: it uses internals of the library, which this program
 * must not use.
 */
#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "service/options/args.h"

#define PROGRAM "netobs-bench"

/* The directory that this program is in, without a slash at the end. */
static int own_directory(char *ret_path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", ret_path, size - 1);
	char *slash;

	if (len < 0)
		return -errno;
	ret_path[len] = '\0';
	slash = strrchr(ret_path, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

/* Returns only if there is no such program. */
static void try_bench(const char *directory, const char *below, char **argv)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%s/" PROGRAM, directory, below);
	execv(path, argv);
	if (errno == ENOENT || errno == ENOTDIR)
		return;
	fprintf(stderr, "netobsctl bench: %s: %s\n", path, strerror(errno));
	_exit(EXIT_FAILED);
}

int cmd_bench(int argc, char **argv)
{
	char directory[PATH_MAX];

	(void)argc;
	if (own_directory(directory, sizeof(directory)) == 0) {
		try_bench(directory, "", argv); /* in the build directory */
		try_bench(directory, "/" NETOBS_LIBEXEC_FROM_SBIN, argv);
	}
	try_bench(NETOBS_LIBEXEC_DIR, "", argv);
	fputs("netobsctl bench: " NETOBS_LIBEXEC_DIR "/" PROGRAM
	      " is not there: install the package netobs-bench\n",
	      stderr);
	return EXIT_FAILED;
}
