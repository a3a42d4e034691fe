/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "chart.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

/* The path of netobs-chart, in the directory of this program. */
static int find_program(char *ret_path, size_t size)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return -errno;
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(ret_path, size, "%s/netobs-chart", self);
	return 0;
}

/* Run it with @argument, or NULL, and these descriptors. */
static int spawn_program(char *argument, int in, int out, pid_t *ret_pid)
{
	char path[PATH_MAX + sizeof("/netobs-chart")];
	char *argv[] = { path, argument, NULL };
	posix_spawn_file_actions_t actions;
	int err = find_program(path, sizeof(path));

	if (err)
		return err;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	err = posix_spawn(ret_pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		fprintf(stderr,
			"netobsctl bench: %s: %s: --plot needs it, python3 and gnuplot-nox\n",
			path, strerror(err));
	return -err;
}

static int wait_for_program(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -EIO : 0;
}

int chart_check(void)
{
	pid_t pid;
	int err = spawn_program((char[]){ "--check" }, STDIN_FILENO,
				STDOUT_FILENO, &pid);

	return err ?: wait_for_program(pid);
}

int chart_draw(const struct report *report, int fd)
{
	int ends[2], err, drawn;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	err = spawn_program(NULL, ends[0], fd, &pid);
	close(ends[0]);
	if (err) {
		close(ends[1]);
		return err;
	}
	err = report_write_json(report, ends[1]);
	close(ends[1]);
	drawn = wait_for_program(pid);
	return err ?: drawn;
}
