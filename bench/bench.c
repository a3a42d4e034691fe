/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include "base/util.h"

#include <netobs/sink.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cpu_last(void)
{
	cpu_set_t allowed;
	int cpu = CPU_SETSIZE;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	while (!CPU_ISSET(--cpu, &allowed))
		;
	return cpu;
}

cpu_set_t cpu_set_of(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

int cpu_bind(void)
{
	const int cpu = cpu_last();
	const cpu_set_t set = cpu_set_of(max_i64(cpu, 0));

	if (cpu < 0)
		return cpu;
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int sink_finish(struct netobs_sink *sink, int ms)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	int err = netobs_sink_wait(sink, ms);

	netobs_sink_stats_get(sink, &stats);
	for (int i = 0; i < NETOBS_SINK_DROPS && !err; i++)
		err = stats.dropped[i].records ? -ENOBUFS : 0;
	return err;
}

void progress_show(const char *text)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", text ?: "");
}

int failure_report(const char *what, int err)
{
	if (!err || err == -EINTR)
		return err;
	progress_show(NULL);
	fprintf(stderr, "netobsctl bench: %s: %s%s\n", what, strerror(-err),
		err == -EPERM ?
			": run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON" :
			"");
	return err;
}
