/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A command in a control group of its own, which programs of a tool are attached to. */
#ifndef NETOBS_TESTS_TOOLS_OWN_GROUP_H
#define NETOBS_TESTS_TOOLS_OWN_GROUP_H

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_UNABLE = 125 };

static char group_name[32];
static int hierarchy = -1; /* the root of cgroup v2, wherever it is mounted */

static volatile sig_atomic_t is_ended;

static void end(int signal)
{
	(void)signal;
	is_ended = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror(errno));
	exit(EXIT_UNABLE);
}

static void remove_group(void)
{
	unlinkat(hierarchy, group_name, AT_REMOVEDIR);
}

/* Returns its directory. It is removed at the end, once the command is gone. */
static int make_group(void)
{
	int fs = (int)syscall(SYS_fsopen, "cgroup2", FSOPEN_CLOEXEC), fd;

	if (fs < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fail("cgroup2");
	hierarchy = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	snprintf(group_name, sizeof(group_name), "nobs-%d", getpid());
	if (hierarchy < 0 || mkdirat(hierarchy, group_name, 0755))
		fail("cannot make a control group");
	atexit(remove_group);
	fd = openat(hierarchy, group_name, O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fail(group_name);
	return fd;
}

static pid_t start(int group, char **command)
{
	pid_t pid = fork();
	int procs;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	procs = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (procs < 0 || write(procs, "0", 1) != 1)
		perror("cgroup.procs");
	else
		execvp(command[0], command);
	_exit(EXIT_UNABLE);
}

#endif
