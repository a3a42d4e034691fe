// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * kernelrtt FILE COMMAND...
 *
 * runs COMMAND in a control group of its own, and writes a line to FILE for each round-trip time
 * that the kernel takes of a TCP connection that it opens, and the least one until then:
 * microseconds. These are those of BPF_SOCK_OPS_RTT_CB, about one per round trip, also of the
 * FIN. Ends as COMMAND does.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelrtt.skel.h"

enum { POLL_MS = 50, EXIT_UNABLE = 125 };

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
	fprintf(stderr, "kernelrtt: %s: %s\n", what, strerror(errno));
	exit(EXIT_UNABLE);
}

static void remove_group(void)
{
	unlinkat(hierarchy, group_name, AT_REMOVEDIR);
}

/* Returns its directory. */
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
		perror("kernelrtt: cgroup.procs");
	else
		execvp(command[0], command);
	_exit(EXIT_UNABLE);
}

static int print_sample(void *file, void *data, size_t size)
{
	uint32_t us[2];

	(void)size;
	memcpy(us, data, sizeof(us));
	fprintf(file, "%u %u\n", us[0], us[1]);
	return 0;
}

static int follow(pid_t pid, struct kernelrtt_bpf *skel, FILE *file)
{
	struct ring_buffer *ring = ring_buffer__new(
		bpf_map__fd(skel->maps.samples), print_sample, file, NULL);
	int status;

	if (!ring)
		fail("ring buffer");
	while (!waitpid(pid, &status, WNOHANG)) {
		if (is_ended) /* the group can be removed behind it */
			kill(pid, SIGKILL);
		ring_buffer__poll(ring, POLL_MS);
	}
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
	if (skel->bss->lost) {
		fprintf(stderr, "kernelrtt: %u samples were lost\n",
			skel->bss->lost);
		return EXIT_UNABLE;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_UNABLE;
}

int main(int argc, char **argv)
{
	struct kernelrtt_bpf *skel;
	FILE *file;
	int group, code;

	if (argc < 3) {
		fprintf(stderr, "kernelrtt: see the head of kernelrtt.c\n");
		return 2;
	}
	signal(SIGTERM, end);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	file = fopen(argv[1], "we");
	if (!file)
		fail(argv[1]);
	group = make_group();
	skel = kernelrtt_bpf__open_and_load();
	if (!skel || bpf_prog_attach(bpf_program__fd(skel->progs.watch), group,
				     BPF_CGROUP_SOCK_OPS, 0))
		fail("sockops");
	code = follow(start(group, argv + 2), skel, file);
	kernelrtt_bpf__destroy(skel);
	if (fclose(file))
		fail(argv[1]);
	return code;
}
