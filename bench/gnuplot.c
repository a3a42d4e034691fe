/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_in(const char *directory, size_t len)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/gnuplot", (int)len, directory);
	return access(path, X_OK) == 0;
}

int gnuplot_check(void)
{
	const char *directory = getenv("PATH");

	while (directory) {
		size_t len = strcspn(directory, ":");

		if (is_in(directory, len))
			return 0;
		directory = directory[len] ? directory + len + 1 : NULL;
	}
	fputs("netobsctl bench: --plot needs gnuplot: apt-get install gnuplot-nox\n",
	      stderr);
	return -ENOENT;
}

static int spawn(struct gnuplot *gnuplot, int in, int out)
{
	char *argv[] = { (char[]){ "gnuplot" }, NULL };
	posix_spawn_file_actions_t actions;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	err = posix_spawnp(&gnuplot->pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int gnuplot_start(struct gnuplot *gnuplot, int fd)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	err = spawn(gnuplot, ends[0], fd);
	close(ends[0]);
	gnuplot->script = err ? NULL : fdopen(ends[1], "w");
	if (!gnuplot->script)
		close(ends[1]);
	return err;
}

int gnuplot_finish(struct gnuplot *gnuplot)
{
	int status = 0;

	if (gnuplot->script)
		fclose(gnuplot->script);
	while (waitpid(gnuplot->pid, &status, 0) < 0 && errno == EINTR)
		;
	return gnuplot->script && status == 0 ? 0 : -EIO;
}
